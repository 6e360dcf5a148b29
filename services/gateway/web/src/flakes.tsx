// The page of a queue's targets that fail: which rejected changes, which are flaky and what that costs, who owns them, and what is
// quarantined until when.

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { Ask, send } from "./act"
import { Notice, openDialog, Reading } from "./frame"
import { useMay } from "./me"
import type { Flake, FlakeList, Quarantine, QuarantineList, RejectingTarget } from "./openapi"
import { QueuePage } from "./queuepage"
import { at, changePath, choose, query } from "./router"
import { partOf, watch } from "./store"
import { Bar } from "./whatif"
import { Ago, duration, exact, plain, plural } from "./words"

export function Flakes({ queue }: { queue: string }) {
  return (
    <QueuePage title="Failing targets" queue={queue}>
      <Known queue={queue} />
    </QueuePage>
  )
}

// Asked is what the reader is asked to confirm: a quarantine of a target, "" for one that is named in the dialog, or its end.
type Asked = { quarantine: string } | { end: string }

function Known({ queue }: { queue: string }) {
  useEffect(() => watch({ part: `flakes ${queue}` }), [queue])
  useEffect(() => watch({ part: `quarantines ${queue}` }), [queue])
  const { flakes, rejecting } = partOf<FlakeList>(`flakes ${queue}`).value ?? {}
  const quarantines = partOf<QuarantineList>(`quarantines ${queue}`).value?.quarantines
  const may = useMay(queue)
  if (!flakes || !rejecting || !quarantines) return <Reading what="the targets" />
  const acts = !!may?.("quarantine").allowed
  const owner = query.value.get("owner") ?? ""
  const owners = [...new Set([...flakes, ...rejecting].flatMap((f) => f.owners ?? []))].sort()
  const shown = owner ? flakes.filter((f) => f.owners?.includes(owner)) : flakes
  const rejected = owner ? rejecting.filter((r) => r.owners?.includes(owner)) : rejecting
  const lost = shown.reduce((sum, f) => sum + f.lost_ms, 0)
  const ask = (what: Asked) => openDialog((close) => <Steer queue={queue} of={what} close={close} />)
  return (
    <>
      <div class="line">
        <span role="status">
          {rejected.length > 0 && (
            <>
              <bdi>{failsMost(rejected)}</bdi>{" "}
            </>
          )}
          {plural(rejected.length, "target")} rejected changes; {plural(shown.length, "flaky target")}
          {shown.length > 0 && `; workers spent ${duration(lost / 1000)} on attempts that failed and were contradicted`}
        </span>
        {(owners.length > 0 || owner) && (
          <label>
            <span>Owner </span>
            <select value={owner} onChange={(e) => choose({ owner: e.currentTarget.value })}>
              <option value="">all</option>
              {[...new Set([...owners, ...(owner ? [owner] : [])])].map((name) => (
                <option key={name} value={name}>
                  {plain(name)}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <section>
        <h2>Targets that rejected changes</h2>
        <p class="soft">Of the changes that the queue keeps, as they are{at.value ? " at that moment" : " now"}; those that rejected most first.</p>
        {rejected.length > 0 ? <Rejected of={rejected} queue={queue} /> : <p>None did.</p>}
      </section>
      <section>
      <h2>Flaky targets</h2>
      <p class="soft">Targets of which a version failed and then passed with nothing changed, those that cost most first.</p>
      {shown.length > 0 ? (
        <Table of={shown} queue={queue} ask={acts ? ask : undefined} />
      ) : owner ? (
        <Notice title="This owner has no flaky target">
          <p>
            <button type="button" onClick={() => choose({ owner: "" })}>
              Show those of all owners
            </button>
          </p>
        </Notice>
      ) : (
        <Notice title="No target has contradicted itself">
          <p>A target is listed here once a version of it has failed and then passed. Failed steps run once more by themselves where retries.failed is more than 0.</p>
        </Notice>
      )}
      </section>
      <section>
        <h2>Quarantines</h2>
        <p class="soft">What is quarantined runs and is reported, and blocks nobody until its quarantine ends.</p>
        {quarantines.length === 0 ? <p>There are none.</p> : <Quarantines of={quarantines} ask={acts ? ask : undefined} />}
        {acts && (
          <p>
            <button type="button" aria-haspopup="dialog" onClick={() => ask({ quarantine: "" })}>
              Quarantine a target
            </button>
          </p>
        )}
      </section>
    </>
  )
}

// failsMost says which target rejected most changes: the list has it first, and those that rejected as many behind it.
function failsMost(list: RejectingTarget[]): string {
  const most = list.filter((r) => r.changes === list[0]!.changes)
  const names = most.slice(0, 3).map((r) => plain(r.target))
  const all = most.length > 3 ? `${names.join(", ")} and ${most.length - 3} more` : names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]
  return `${all} rejected most changes (${list[0]!.changes.toLocaleString()}${most.length > 1 ? " each" : ""}).`
}

function Head({ of }: { of: [string, string?][] }) {
  return (
    <thead>
      <tr>
        {of.map(([name, title]) => (
          <th key={name} scope="col" title={title}>
            {name}
          </th>
        ))}
      </tr>
    </thead>
  )
}

function Rejected({ of, queue }: { of: RejectingTarget[]; queue: string }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Targets that rejected changes">
      <table class="facts">
        <Head of={[["target"], ["changes", "How many changes were rejected for it"], ["last"], ["owners", "By the manifests and the CODEOWNERS file of the mainline"]]} />
        <tbody>
          {of.map((r) => (
            <tr key={r.target}>
              <td>
                <code>
                  <bdi>{plain(r.target)}</bdi>
                </code>
              </td>
              <td>
                <Bar of={r.changes} most={of[0]!.changes} says={r.changes.toLocaleString()} />
              </td>
              <td>
                <Ago at={r.last_at} />
                {": "}
                <a href={changePath(queue, r.last_change)}>
                  <bdi>{plain(r.last_title || r.last_change)}</bdi>
                </a>
              </td>
              <td>{r.owners?.map(plain).join(", ") || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Table({ of, queue, ask }: { of: Flake[]; queue: string; ask?: (what: Asked) => void }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Flaky targets">
      <table class="facts">
        <Head
          of={[
            ["target"],
            ["rate", "Share of the versions that were flakes"],
            ["flakes", "Versions that passed only after a failure, of those that passed since the first flake; older ones weigh less"],
            ["lost", "Time that workers spent on attempts which failed and were contradicted"],
            ["last seen"],
            ["owners", "By the manifests and the CODEOWNERS file of the mainline"],
            ["quarantine"],
          ]}
        />
        <tbody>
          {of.map((f) => (
            <tr key={f.target}>
              <td>
                <code>
                  <bdi>{plain(f.target)}</bdi>
                </code>
              </td>
              <td>{Math.round(100 * f.rate)} %</td>
              <td>
                {f.flakes.toLocaleString()} of {f.versions.toLocaleString()}
              </td>
              <td>{duration(f.lost_ms / 1000)}</td>
              <td>
                <Ago at={f.last_seen} />
                {f.change && (
                  <>
                    {" with "}
                    <a href={changePath(queue, f.change)}>
                      <bdi>{plain(f.change)}</bdi>
                    </a>
                  </>
                )}
              </td>
              <td>{f.owners?.map(plain).join(", ") || "nobody is named"}</td>
              <td>
                {f.quarantined ? (
                  <Until of={f.quarantined} />
                ) : ask ? (
                  <button type="button" aria-label={`Quarantine ${plain(f.target)}`} onClick={() => ask({ quarantine: f.target })}>
                    Quarantine
                  </button>
                ) : (
                  "none"
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Until({ of }: { of: Quarantine }) {
  return (
    <span class="state held">
      ‖ until <time dateTime={of.until} title={exact(of.until)}>{new Date(of.until).toLocaleDateString()}</time>
    </span>
  )
}

function Quarantines({ of, ask }: { of: Quarantine[]; ask?: (what: Asked) => void }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Quarantines">
      <table class="facts">
        <Head of={[["target"], ["until"], ["by"], ["since"], ["why"], ...(ask ? ([["end"]] as [string][]) : [])]} />
        <tbody>
          {of.map((q) => (
            <tr key={q.target}>
              <td>
                <code>
                  <bdi>{plain(q.target)}</bdi>
                </code>
                {q.unseen && <div class="soft">no target that the queue has seen has this name</div>}
              </td>
              <td>
                <Until of={q} />
              </td>
              <td>{q.source === "configuration" ? "the configuration" : q.source === "rate" ? "the rate of flakes" : <bdi>{plain(q.who || "somebody")}</bdi>}</td>
              <td>
                <Ago at={q.since} />
              </td>
              <td>
                <bdi>{plain(q.why ?? "")}</bdi>
              </td>
              {ask && (
                <td>
                  {q.source === "configuration" ? (
                    "in the configuration"
                  ) : (
                    <button type="button" aria-label={`End the quarantine of ${plain(q.target)}`} onClick={() => ask({ end: q.target })}>
                      End
                    </button>
                  )}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

// lasts are how many days a quarantine lasts.
const lasts: [string, number][] = [
  ["a day", 1],
  ["a week", 7],
  ["two weeks", 14],
  ["30 days", 30],
  ["90 days", 90],
]

function Steer({ queue, of, close }: { queue: string; of: Asked; close: () => void }) {
  const days = useSignal(7)
  const path = `/v1/queues/${encodeURIComponent(queue)}/quarantines`
  const named = useSignal("quarantine" in of ? of.quarantine : of.end)
  if ("end" in of) {
    return (
      <Ask title={`End the quarantine: ${plain(of.end)}`} asks="Its failures block changes again." button="End the quarantine" close={close} send={(why) => send(`${path}/end`, { target: of.end, ...(why && { why }) })} />
    )
  }
  return (
    <Ask
      title={of.quarantine ? `Quarantine: ${plain(of.quarantine)}` : "Quarantine a target"}
      asks="It runs as before and is reported, and blocks nobody if it fails. Everybody who lands on it reads why."
      button="Quarantine"
      needsWhy
      close={close}
      send={(why) => send(path, { target: named.value.trim(), until: new Date(Date.now() + days.value * 86_400_000).toISOString(), why })}
    >
      <div class="fields">
        {!of.quarantine && (
          <label>
            <span>Target, or several with *</span>
            <input autoFocus maxLength={1000} value={named.value} onInput={(e) => (named.value = e.currentTarget.value)} />
          </label>
        )}
        <label>
          <span>It lasts</span>
          <select value={String(days.value)} onChange={(e) => (days.value = Number(e.currentTarget.value))}>
            {lasts.map(([name, n]) => (
              <option key={n} value={String(n)}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
    </Ask>
  )
}
