// What the queue's own past would have been under another setting: the gateway simulates it when somebody asks.

import { useSignal } from "@preact/signals"
import { send } from "./act"
import { useMay } from "./me"
import type { Setting, SettingFigures, Simulation, WhatIf as State } from "./openapi"
import { useRead } from "./read"
import { Ago, exact, plain, plural } from "./words"

// seconds is a time in the unit that suits it.
export function seconds(s: number): string {
  if (s < 100) return `${+s.toPrecision(2)} s`
  if (s < 6000) return `${+(s / 60).toPrecision(2)} min`
  return `${+(s / 3600).toPrecision(2)} h`
}

const hours = (n: number) => (n < 1 ? seconds(3600 * n) : `${(+n.toPrecision(3)).toLocaleString()} h`)

// rows are the figures that are compared. Of each less is better.
const rows: [string, keyof SettingFigures, (n: number) => string][] = [
  ["half of the changes wait", "wait_p50_s", seconds],
  ["95 of 100 wait", "wait_p95_s", seconds],
  ["each takes, over what it takes alone", "slowdown", (n) => `${+n.toPrecision(3)} times`],
  ["workers are busy, together", "worker_hours", hours],
]

export function WhatIf({ queue }: { queue: string }) {
  const path = `/v1/queues/${encodeURIComponent(queue)}/what-if`
  const { value, wrong } = useRead<State>(path, `what-if ${queue}`)
  const may = useMay(queue)?.("simulate")
  if (!value && !wrong) return null
  return (
    <section class="whatif">
      <h2>What if?</h2>
      {wrong && (
        <p role="alert" class="wrong">
          {plain(wrong)}
        </p>
      )}
      {value?.missing && <p class="soft">{plain(value.missing)}</p>}
      {value && !value.missing && (
        <>
          <p class="soft">
            The queue's newest changes, simulated with other workers or thresholds beside the present ones. Times are those that a change waits: until it is decided, less what it takes with all workers to itself. What other queues of the pool take is left out.
          </p>
          {may?.allowed && <Form key={JSON.stringify(value.present)} path={path} present={value.present} busy={!!value.busy || value.run?.state === "running"} />}
          {may && !may.allowed && <p class="soft">{plain(`${may.message ?? ""} ${may.advice ?? ""}`)}</p>}
          {value.busy && <p class="soft">The gateway simulates another queue now, and one at a time.</p>}
          {value.run && <Shown of={value.run} path={path} acts={!!may?.allowed} />}
        </>
      )}
    </section>
  )
}

// sizes are how many changes are simulated.
const sizes = [100, 500, 1000, 2000]

function Form({ path, present, busy }: { path: string; present: Setting; busy: boolean }) {
  const workers = useSignal(String(present.workers * 2))
  const threshold = useSignal(String(present.threshold))
  const bypass = useSignal(String(present.bypass_threshold))
  const changes = useSignal(500)
  const wrong = useSignal("")
  const start = async (e: Event) => {
    e.preventDefault()
    wrong.value = await send(path, { workers: Number(workers.value), threshold: Number(threshold.value), bypass_threshold: Number(bypass.value), changes: changes.value })
  }
  return (
    <form class="fields" onSubmit={start}>
      <label>
        <span>Workers (now {present.workers})</span>
        <input type="number" required min={1} max={10_000} step={1} value={workers.value} onInput={(e) => (workers.value = e.currentTarget.value)} />
      </label>
      <label>
        <span>Threshold (now {present.threshold})</span>
        <input type="number" required min={0} max={1} step="any" value={threshold.value} onInput={(e) => (threshold.value = e.currentTarget.value)} />
      </label>
      <label>
        <span>Bypass threshold (now {present.bypass_threshold > 1 ? "none" : present.bypass_threshold}; 2: none)</span>
        <input type="number" required min={0} max={2} step="any" value={bypass.value} onInput={(e) => (bypass.value = e.currentTarget.value)} />
      </label>
      <label>
        <span>Changes at most</span>
        <select value={String(changes.value)} onChange={(e) => (changes.value = Number(e.currentTarget.value))}>
          {sizes.map((n) => (
            <option key={n} value={String(n)}>
              {n.toLocaleString()}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" disabled={busy}>
        Simulate
      </button>
      {wrong.value && (
        <p role="alert" class="wrong">
          {plain(wrong.value)}
        </p>
      )}
    </form>
  )
}

const says = (s: Setting) => `${plural(s.workers, "worker")}, threshold ${s.threshold}, ${s.bypass_threshold > 1 ? "no bypasses" : `bypass threshold ${s.bypass_threshold}`}`

function Shown({ of, path, acts }: { of: Simulation; path: string; acts: boolean }) {
  const asked = (
    <span class="soft">
      {says(of.chosen)}; asked <Ago at={of.started_at} />
      {of.who && (
        <>
          {" by "}
          <bdi>{plain(of.who)}</bdi>
        </>
      )}
    </span>
  )
  if (of.state === "running")
    return (
      <div class="line">
        <span class="progress">
          <progress max={1} value={of.done} aria-label="How much is simulated" />
          <span>{Math.round(100 * of.done)} %</span>
        </span>
        {asked}
        {acts && (
          <button type="button" onClick={() => void send(`${path}/cancel`, {}, false)}>
            Cancel
          </button>
        )}
      </div>
    )
  const r = of.result
  if (!r)
    return (
      <p class={of.state === "failed" ? "wrong" : undefined} role="status">
        {of.state === "failed" ? `The simulation failed: ${plain(of.message ?? "")}. ` : "The simulation was cancelled. "}
        {asked}
      </p>
    )
  return (
    <>
      <p class="sentence" role="status">
        {plain(r.sentence)}
      </p>
      <div class="wide" tabIndex={0} role="group" aria-label="Both settings">
        <table class="facts">
          <thead>
            <tr>
              <th scope="col">of {r.changes.toLocaleString()} changes</th>
              <th scope="col">present: {says(of.present)}</th>
              <th scope="col">chosen: {says(of.chosen)}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, field, shown]) => (
              <tr key={field}>
                <th scope="row">{name}</th>
                <td>
                  <Bar of={r.present[field]} most={Math.max(r.present[field], r.chosen[field])} says={shown(r.present[field])} />
                </td>
                <td>
                  <Bar of={r.chosen[field]} most={Math.max(r.present[field], r.chosen[field])} says={shown(r.chosen[field])} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">
        They arrived from {exact(r.from)} to {exact(r.to)}. {asked}
      </p>
    </>
  )
}

// Bar is a bar beside a figure.
export function Bar({ of, most, says }: { of: number; most: number; says: string }) {
  return (
    <span class="share">
      <svg width={80} height={10} aria-hidden="true">
        <rect x={0} y={0} width={Math.max(1, (80 * of) / (most || 1))} height={10} />
      </svg>
      {says}
    </span>
  )
}
