// The parts of what is known about a change. The row that is opened in place and the change's page show the same ones.

import { RetryMainline } from "./act"
import { Fold } from "./frame"
import type { Ahead, Build, Change, Event, Overview, Reason, Step } from "./openapi"
import { Log, logName } from "./log"
import { changePath, choose, query } from "./router"
import { queues } from "./store"
import { Progress } from "./progress"
import { Ago, Clock, duration, plain, plural, sentence, shown, State } from "./words"

// ChangeLink leads to a change, by its title where that is known.
export function ChangeLink({ queue, id, title }: { queue: string; id: string; title?: string }) {
  return (
    <a href={changePath(queue, id)}>
      <bdi>{plain(title || id)}</bdi>
    </a>
  )
}

function Names({ of, most = 6 }: { of: string[]; most?: number }) {
  return (
    <>
      {of.slice(0, most).map((t, i) => (
        <>
          {i > 0 && ", "}
          <code key={t}>{plain(t)}</code>
        </>
      ))}
      {of.length > most && ` and ${of.length - most} more`}
    </>
  )
}

// Failed is what failed and whose fault it is, with the decisive lines first.
export function Failed({ of }: { of: Change }) {
  const f = of.failure
  const r = of.rejection
  if (!f && !r) return null
  const failed = r?.failed?.find((s) => s.target === f?.target && s.hash === f.hash && s.attempt === f.attempt) ?? (f?.hash ? ({ target: f.target, hash: f.hash, attempt: f.attempt, lines: f.lines, state: "failed" } as Step) : undefined)
  const told = of.why.includes(f?.sentence ?? r!.message)
  if (told && !f && !r?.conflicting && !failed) return null
  return (
    <section class="failed">
      <h2>What failed</h2>
      {!told && <p><Linked queue={of.queue} ids={f?.with ?? []} title={() => undefined} text={f?.sentence.startsWith(f.target) ? `${f.sentence}.` : sentence(f?.sentence ?? r!.message)} /></p>}
      {f?.with && f.with.length > mostNamed && (
        <p>
          All that it was built on top of, the last to land first:{" "}
          <span class="names">
            {f.with.map((id) => <ChangeLink key={id} queue={of.queue} id={id} />).reverse()}
          </span>
        </p>
      )}
      {f && f.lines.length > 0 && (
        <pre class="block decisive" tabIndex={0}>
          {f.lines.map(plain).join("\n")}
        </pre>
      )}
      {f?.owners && <p class="soft">Owned by {f.owners.map(plain).join(", ")}</p>}
      {f?.also && (
        <p class="soft">
          These failed too: <Names of={f.also} />
        </p>
      )}
      {r?.conflicting && (
        <p>
          With <ChangeLink queue={of.queue} id={r.conflicting} />
        </p>
      )}
      {failed && <Steps queue={of.queue} change={of.change} steps={[failed]} place="failed" bare />}
    </section>
  )
}

// MainlineFails is what fails on the mainline, with the run that made it red and what can be done about it.
export function MainlineFails({ of }: { of: Overview }) {
  const runs = of.mainline_failures ?? []
  const red = of.mainline_red ?? []
  const wait = of.need_retry ?? []
  if (red.length === 0 && wait.length === 0) return null
  const rest = red.filter((target) => !runs.some((s) => s.target === target))
  const since = of.mainline_red_since
  return (
    <section class="failed">
      <div class="line">
        <h2>What fails on the mainline</h2>
        <span class="space" />
        <RetryMainline of={of} />
      </div>
      {since && (
        <p class="soft">
          Red since the direct push <code title={since.commit}>{since.commit.slice(0, 12)}</code>
          {since.title && (
            <>
              {" "}
              <bdi>{plain(since.title)}</bdi>
            </>
          )}
          {since.author && (
            <>
              {" by "}
              <bdi>{plain(since.author)}</bdi>
            </>
          )}
          {since.suspects > 1 && `, or one after it (${since.suspects.toLocaleString()} in all)`}
          {since.at && (
            <>
              ; a step first failed <Ago at={since.at} />
            </>
          )}
        </p>
      )}
      {of.red_before_queue && (
        <p class="soft">
          Red since before the queue: <Names of={of.red_before_queue} />
        </p>
      )}
      <Steps queue={of.queue} change="" steps={runs} place="mainline" />
      {rest.length > 0 && (
        <p>
          Also red: <Names of={rest} />
        </p>
      )}
      {wait.length > 0 && (
        <p>
          {plural(wait.length, "change waits", "changes wait")} for a retry, because the mainline could not be verified where {wait.length === 1 ? "it fails" : "they fail"}:{" "}
          {wait.slice(0, 8).map((id, i) => (
            <>
              {i > 0 && ", "}
              <ChangeLink key={id} queue={of.queue} id={id} />
            </>
          ))}
          {wait.length > 8 && ` and ${wait.length - 8} more`}
        </p>
      )}
    </section>
  )
}

// waitsForWorkers says that builds of a change have begun and none of their steps has a worker; "" otherwise.
function waitsForWorkers(of: Change): string {
  const steps = (of.builds ?? []).filter((b) => b.state === "running").flatMap((b) => b.steps ?? [])
  const open = new Set(steps.filter((s) => s.state === "outstanding").map((s) => `${s.target} ${s.hash}`)).size
  if (open === 0 || steps.some((s) => s.state === "running")) return ""
  const pool = queues.value?.[of.queue]?.pool
  return `None of its steps runs now: ${plural(open, "step")} ${open === 1 ? "waits" : "wait"} for a worker${pool && pool.busy_workers >= pool.workers ? `; all ${pool.workers} are busy` : ""}.`
}

// Waits is what a pending change waits for.
export function Waits({ of }: { of: Change }) {
  const ahead = of.ahead ?? []
  // The sentence that stands above is not said again, unless there are changes to go to.
  const reasons = of.reasons.filter((r) => r.sentence !== of.why || notListed(r, ahead).length > 0)
  const workers = waitsForWorkers(of)
  if (!of.position || (reasons.length === 0 && !of.ahead && !workers)) return null
  return (
    <section>
      <h2>What it waits for</h2>
      {workers && <p>{workers}</p>}
      {reasons.length > 0 && (
        <ul class="reasons">
          {reasons.map((r) => (
            <Why key={r.code + r.sentence} of={r} change={of} listed={ahead} />
          ))}
        </ul>
      )}
      {of.ahead && (
        <table class="facts meets" role="table">
          <caption class="soft">Changes ahead that it meets</caption>
          <tbody>
            {of.ahead.slice(0, 20).map((a) => (
              <AheadRow key={a.change} of={a} queue={of.queue} />
            ))}
          </tbody>
        </table>
      )}
      {of.ahead && of.ahead.length > 20 && <p class="soft">and {of.ahead.length - 20} more</p>}
    </section>
  )
}

const notListed = (of: Reason, listed: Ahead[]) => (of.changes ?? []).filter((id) => !listed.some((a) => a.change === id))

// naming matches ids of changes in a text. An id ends where a character that ids have does not go on.
export const naming = (ids: string[]) => new RegExp(`(?<![\\w/.-])(${ids.map((id) => id.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})(?![\\w/-]|\\.\\w)`, "u")

// Said is a sentence of a change, in which the changes that its reasons name are links, with their titles on hover.
export function Said({ of, text }: { of: Change; text: string }) {
  const titles = new Map([...of.reasons.flatMap((r) => r.changes ?? []).map((id) => [id, ""] as const), ...(of.ahead ?? []).map((a) => [a.change, a.title ?? ""] as const)])
  titles.delete(of.change)
  return <Linked queue={of.queue} ids={[...titles.keys()]} title={(id) => titles.get(id)} text={text} />
}

// Linked is a text in which the changes of these ids are links, with their titles on hover where those are known.
export function Linked({ queue, ids, title, text }: { queue: string; ids: string[]; title: (id: string) => string | undefined; text: string }) {
  if (ids.length === 0) return <bdi>{plain(text)}</bdi>
  return (
    <bdi>
      {text.split(naming(ids.sort((a, b) => b.length - a.length))).map((part, i) =>
        i % 2 === 0 ? (
          plain(part)
        ) : (
          <a key={i} href={changePath(queue, part)} title={plain(title(part) ?? "") || undefined}>
            <bdi>{plain(part)}</bdi>
          </a>
        ),
      )}
    </bdi>
  )
}

// Why is a reason, with links to changes that are neither in its sentence nor listed below it.
function Why({ of, change, listed }: { of: Reason; change: Change; listed: Ahead[] }) {
  const others = notListed(of, listed).filter((id) => !naming([id]).test(of.sentence))
  return (
    <li>
      <Said of={change} text={of.sentence} />
      {others.length > 0 && (
        <span class="names">
          {others.slice(0, 8).map((id) => (
            <ChangeLink key={id} queue={change.queue} id={id} />
          ))}
        </span>
      )}
    </li>
  )
}

function AheadRow({ of, queue }: { of: Ahead; queue: string }) {
  return (
    <tr>
      <td>
        <ChangeLink queue={queue} id={of.change} title={of.title} />
        {of.title && (
          <div>
            <code class="id">{plain(of.change)}</code>
          </div>
        )}
      </td>
      <td>
        <State name={shown(of)} /> {of.held && <span class="state held">‖ held</span>}
      </td>
      <td>
        {of.required && "is required by it. "}
        {of.merge_conflict && "does not merge with it. "}
        {of.targets && (
          <>
            meets it in <Names of={of.targets} most={3} />
          </>
        )}
      </td>
    </tr>
  )
}

// bad orders steps: what did not pass comes first, then what runs.
const bad = (s: Step) => (["failed", "timed_out", "could_not_run"].includes(s.state) ? 0 : s.state === "running" ? 1 : s.state === "outstanding" ? 2 : 3)

// runsOf are the runs of a build's steps: those that settled them or go on, and the ones before these.
export const runsOf = (b: Build) => [...(b.steps ?? []), ...(b.earlier_runs ?? [])]

// live reports whether a build goes on.
export const live = (b: Build) => b.state === "running" || b.state === "preparing"

// Futures are the builds of a change: each is a path, which assumes that changes ahead land. Those that ended are folded while others run.
export function Futures({ of }: { of: Change }) {
  const builds = [...(of.builds ?? [])].reverse()
  const running = builds.filter(live)
  const ended = builds.filter((b) => !live(b))
  if (builds.length === 0) return null
  return (
    <section>
      <h2>Its possible futures</h2>
      <ul class="futures">
        {(running.length > 0 ? running : ended).map((b, _, shown) => (
          <Future key={b.build} of={b} change={of} open={shown.length <= 2 && !of.failure} />
        ))}
      </ul>
      {running.length > 0 && ended.length > 0 && (
        <Fold name={`builds of ${of.change}`} open={ended.some(showsLog)} summary={`${plural(ended.length, "build")} ended before`}>
          <ul class="futures">
            {ended.map((b) => (
              <Future key={b.build} of={b} change={of} open={false} />
            ))}
          </ul>
        </Fold>
      )}
    </section>
  )
}

// mostNamed is how many changes a line names.
const mostNamed = 3

// joined are the names of changes as text, the last of them where there are too many: futures differ in these. Each is of its own direction.
function joined(names: string[], most = mostNamed): string {
  const left = Math.max(0, names.length - most)
  const apart = names.slice(left).map((name) => `\u2068${plain(name)}\u2069`)
  if (left > 0) return `${apart.join(", ")} and ${left} more`
  return apart.length < 2 ? apart.join("") : `${apart.slice(0, -1).join(", ")} and ${apart[apart.length - 1]}`
}

// assumes is what a build takes for granted of the changes ahead: those that it assumes land, and none of the others that its change meets.
export function assumes(of: Build, change: Change): string {
  const ahead = (change.ahead ?? []).map((a) => a.change)
  const others = ahead.filter((id) => !of.assumed.includes(id))
  // A build that goes on could not, had one left otherwise than by landing: those that are not ahead any more are on the mainline.
  const assumed = live(of) ? of.assumed.filter((id) => ahead.includes(id)) : of.assumed
  const none = others.length === 0 ? "" : `${joined(others)} ${others.length === 1 ? "does" : "do"} not`
  if (assumed.length === 0) return none === "" ? "on the mainline as it stands" : `on the mainline as it stands, if ${none} land`
  return `if ${joined(assumed)} ${assumed.length === 1 ? "lands" : "land"}${none === "" ? "" : ` and ${none}`}`
}

// alike reports whether another build of the change reads the same: one was made on another commit of the mainline.
const alike = (of: Build, change: Change) => (change.builds ?? []).some((b) => b.build !== of.build && assumes(b, change) === assumes(of, change))

function Future({ of, change, open }: { of: Build; change: Change; open: boolean }) {
  const steps = (of.steps ?? []).filter((s) => live(of) || s.state !== "outstanding").sort((a, b) => bad(a) - bad(b))
  const left = (of.steps ?? []).length - steps.length
  return (
    <li>
      <Fold
        name={of.build}
        open={open || showsLog(of)}
        summary={
          <>
            <State name={of.state === "finished" ? (steps.find((s) => bad(s) === 0)?.state ?? of.state) : shown(of)} />
            {of.state === "running" && steps.some((s) => bad(s) === 0 && Date.parse(s.finished_at ?? "") >= Date.parse(of.scheduled_at)) && <span class="state failed">✗ a step {steps.some((s) => s.state === "failed") ? "failed" : steps.find((s) => bad(s) === 0)!.state.replaceAll("_", " ")}</span>}
            <span>
              {assumes(of, change)}
              {alike(of, change) && <span class="soft"> (on {of.base.slice(0, 12)})</span>}
            </span>
            <span class="space" />
            {of.steps_total > 0 && <Progress done={of.steps_done} total={of.steps_total} />}
          </>
        }
      >
        {of.why && <p class="soft">{plain(of.why)}</p>}
        {of.assumed.length > mostNamed && <p class="soft">It assumes that these have landed, or do: {joined(of.assumed, of.assumed.length)}.</p>}
        {of.message && <p class="soft">{plain(of.message)}</p>}
        <Steps queue={change.queue} change={change.change} steps={[...steps, ...(of.earlier_runs ?? [])]} place={of.build} />
        {left > 0 && <p class="soft">{plural(left, "step")} did not run in it.</p>}
      </Fold>
    </li>
  )
}

export const logged = (s: Step) => !!s.attempt && !["outstanding", "trivial"].includes(s.state)

// showsLog reports whether the log that is chosen is shown in a build. Builds share steps, and it is shown where it was chosen alone.
const showsLog = (b: Build) => query.value.get("in") === b.build && runsOf(b).some((s) => logged(s) && logName(s) === query.value.get("log"))

// Steps are target versions, each with the step that settled it or is to. place names them on the page. Those of the mainline are of no
// change, "".
// The one that is shown as what failed is bare: what it says stands above it.
export function Steps({ queue, change, steps, place, bare }: { queue: string; change: string; steps: Step[]; place: string; bare?: boolean }) {
  const opened = query.value.get("in") === place ? query.value.get("log") : null
  if (steps.length === 0) return null
  return (
    <ul class="steps">
      {steps.slice(0, 500).map((s) => {
        const name = logName(s)
        const open = opened === name && logged(s)
        return (
          <li key={s.target + name}>
            <div class="line">
              {!bare && <State name={s.state} />}
              <code class="target">{plain(s.target)}</code>
              {s.flaky && <span class="state held">flaky</span>}
              {s.quarantined && <span class="state held">quarantined</span>}
              {s.duration_ms !== undefined && s.duration_ms > 0 && <span class="soft">{duration(s.duration_ms / 1000)}</span>}
              {(s.attempt ?? 0) > 1 && <span class="soft">attempt {s.attempt}</span>}
              {s.hash && (
                <span class="soft" title={`The version of the target: ${s.hash}`}>
                  version {s.hash.slice(0, 8)}
                </span>
              )}
              {s.failed_command && <span class="soft">in {plain(s.failed_command)}</span>}
              {s.worker && <span class="soft">on {plain(s.worker)}</span>}
              {logged(s) && (
                <button type="button" class="quiet" aria-expanded={open} onClick={() => choose({ log: open ? "" : name, in: open ? "" : place, line: "" })}>
                  {open ? "Hide the output" : "Output"}
                </button>
              )}
            </div>
            {!bare && s.lines && s.lines.length > 0 && (
              <pre class="block decisive" tabIndex={0}>
                {s.lines.map(plain).join("\n")}
              </pre>
            )}
            {open && <Log queue={queue} change={change} step={s} />}
          </li>
        )
      })}
      {steps.length > 500 && <li class="soft">and {steps.length - 500} more</li>}
    </ul>
  )
}

// Landed is what the change became on the mainline, and what proves it.
export function Landed({ of }: { of: Change }) {
  const l = of.landing
  if (!l) return null
  return (
    <section>
      <h2>On the mainline</h2>
      <p>
        {l.commits.map((c) => (
          <>
            <code key={c} title={c}>
              {c.slice(0, 12)}
            </code>{" "}
          </>
        ))}
        on <code title={l.base}>{l.base.slice(0, 12)}</code>, <Ago at={l.at} />
      </p>
      {l.bypassed && (
        <p class="soft">
          It landed before these, which were ahead of it:{" "}
          {l.bypassed.slice(0, 8).map((id) => (
            <>
              <ChangeLink key={id} queue={of.queue} id={id} />{" "}
            </>
          ))}
        </p>
      )}
      <h3>Proof: {plural(l.proof.length, "target version")} of this very tree</h3>
      <Steps queue={of.queue} change={of.change} steps={[...l.proof].sort((a, b) => bad(a) - bad(b))} place="proof" />
    </section>
  )
}

// Timeline is what happened, newest last. What happened to earlier revisions is folded.
export function Timeline({ of }: { of: Change }) {
  const earlier = of.timeline.filter((e) => e.earlier)
  const own = of.timeline.filter((e) => !e.earlier)
  return (
    <section>
      <h2>What happened</h2>
      {earlier.length > 0 && (
        <Fold name={`earlier of ${of.change}`} summary={`${plural(earlier.length, "event")} of earlier revisions`}>
          <Events of={earlier} />
        </Fold>
      )}
      {!!of.omitted_events && <p class="soft">{plural(of.omitted_events, "event")} in between are not kept.</p>}
      <Events of={own} />
    </section>
  )
}

// foldedFrom is how many events of a kind, one after the other, are folded into one line.
const foldedFrom = 3

function Events({ of }: { of: Event[] }) {
  const runs: Event[][] = []
  for (const e of of) {
    const last = runs[runs.length - 1]
    if (last && last[0]!.kind === e.kind) last.push(e)
    else runs.push([e])
  }
  return (
    <ol class="timeline">
      {runs.map((run, i) => (run.length < foldedFrom ? run.map((e, j) => <Happened key={`${i}.${j}`} of={e} />) : <Folded key={i} of={run} />))}
    </ol>
  )
}

function Happened({ of }: { of: Event }) {
  return (
    <li class={of.kind}>
      <Clock at={of.at} />
      <bdi>{plain(of.text)}</bdi>
    </li>
  )
}

function Folded({ of }: { of: Event[] }) {
  return (
    <li class={of[0]!.kind}>
      <Clock at={of[0]!.at} />
      <Fold name={of[0]!.at} summary={`${of.length} times: ${of[0]!.kind.replaceAll("_", " ")}`}>
        <ol class="timeline">
          {of.map((e, i) => (
            <Happened key={i} of={e} />
          ))}
        </ol>
      </Fold>
    </li>
  )
}
