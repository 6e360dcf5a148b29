// The page of a pool: what its workers ran when, and why they were idle. Everything that is chosen is in the address.

import { useComputed, useSignal } from "@preact/signals"
import { useEffect, useMemo, useRef } from "preact/hooks"
import { Header, Notice } from "./frame"
import type { IdleSum, StepRun, Timeline } from "./openapi"
import { Connecting } from "./queues"
import { useRead } from "./read"
import { at, changeAt, choose, momentOf, poolPath, query } from "./router"
import { queues } from "./store"
import { exact, plain, plural } from "./words"
import { Chart } from "./workers"

const second = 1000
const minute = 60 * second

// spans are how much time is shown, in minutes.
export const spans: [string, number][] = [
  ["minute", 1],
  ["10 minutes", 10],
  ["hour", 60],
  ["6 hours", 360],
  ["day", 1440],
  ["week", 10_080],
]

const shortest = 10 * second
const longest = 10_080 * minute

// pause is for how long a timeline that goes on stands still at least.
const pause = 2000

// useMoved is a number that grows when something happens in the queues, steps among it, once in a pause at most.
function useMoved(): number {
  const turn = useSignal(0)
  const seen = useComputed(() => queues.value && JSON.stringify(queues.value)).value
  const state = useRef({ last: "", timer: 0 })
  useEffect(() => {
    const s = state.current
    if (seen === undefined || s.last === seen) return
    const first = s.last === ""
    s.last = seen
    if (first || s.timer) return
    s.timer = setTimeout(() => {
      s.timer = 0
      turn.value++
    }, pause) as unknown as number
  }, [seen])
  useEffect(() => () => clearTimeout(state.current.timer), [])
  return turn.value
}

export function Pool({ pool }: { pool: string }) {
  const known = queues.value
  return (
    <>
      <Header />
      <main>
        <h1 tabIndex={-1}>
          Workers of pool <bdi>{plain(pool)}</bdi>
        </h1>
        {!known ? <Connecting /> : <Known pool={pool} />}
      </main>
    </>
  )
}

// chosen is the time that the address names: up to a moment of the past, or up to now.
function chosen() {
  const span = Math.min(longest, Math.max(shortest, Number(query.value.get("minutes")) * minute || 60 * minute))
  const to = momentOf(at.value)
  return { live: Number.isNaN(to), from: to - span, to, span }
}

// show goes to a time. One that ends in the future, or now but for what is rounded, goes on.
export function show(from: number, to: number) {
  const span = Math.min(longest, Math.max(shortest, Math.round((to - from) / second) * second))
  const end = Math.round(((from + to) / 2 + span / 2) / second) * second
  choose({ at: end >= Date.now() - second ? "" : new Date(end).toISOString(), minutes: String(+(span / minute).toFixed(3)) }, false)
}

function Known({ pool }: { pool: string }) {
  const { live, from, to, span } = chosen()
  const moved = useMoved()
  const path = `/v1/pools/${encodeURIComponent(pool)}/timeline`
  // Up to now: the beginning follows from when it is read.
  const begins = useMemo(() => (live ? Date.now() - span : from), [live, span, from, live ? moved : 0])
  const asks = new URLSearchParams({ from: new Date(begins).toISOString(), ...(!live && { to: new Date(to).toISOString() }) })
  const { value, wrong } = useRead<Timeline>(`${path}?${asks}`)
  const pools = [...new Set(Object.values(queues.value ?? {}).flatMap((q) => (q.pool ? [q.pool.name] : [])))].sort()
  return (
    <>
      {pools.length > 1 && (
        <nav class="pools" aria-label="Pools">
          {pools.map((name) => (
            <a key={name} href={poolPath(name)} aria-current={name === pool ? "page" : undefined}>
              {plain(name)}
            </a>
          ))}
        </nav>
      )}
      {wrong && (
        <p role="alert" class="wrong">
          {plain(wrong)}
        </p>
      )}
      {value ? <Shown of={value} /> : !wrong && <p class="soft">Reading the timeline…</p>}
    </>
  )
}

function Shown({ of }: { of: Timeline }) {
  // What is chosen counts, not what is still shown meanwhile.
  const { live, to, span } = chosen()
  const table = query.value.get("view") === "table"
  const change = query.value.get("change") ?? ""
  const changes = useMemo(() => changesOf(of), [of])
  const end = () => (live ? Date.now() : to)
  const shift = (by: number) => show(end() - span + by, end() + by)
  // resize shows so much time: up to now, or around the middle of what is shown.
  const resize = (next: number) => (live ? show(end() - next, end()) : show(to - span / 2 - next / 2, to - span / 2 + next / 2))
  return (
    <>
      <div class="line">
        <button type="button" onClick={() => shift(-span / 2)}>
          ‹ Earlier
        </button>
        <button type="button" disabled={live} onClick={() => shift(span / 2)}>
          Later ›
        </button>
        <button type="button" disabled={span <= shortest} onClick={() => resize(span / 2)}>
          + Zoom in
        </button>
        <button type="button" disabled={span >= longest} onClick={() => resize(span * 2)}>
          − Zoom out
        </button>
        <label>
          <span class="unseen">How much time is shown</span>
          <select value={String(span / minute)} onChange={(e) => resize(Number(e.currentTarget.value) * minute)}>
            {!spans.some(([, n]) => n * minute === span) && <option value={String(span / minute)}>{length(span)}</option>}
            {spans.map(([name, n]) => (
              <option key={n} value={String(n)}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <button type="button" aria-pressed={live} onClick={() => show(Date.now() - span, Date.now())}>
          Now
        </button>
        {changes.length > 0 && (
          <label>
            <span>Change </span>
            <select value={change} onChange={(e) => choose({ change: e.currentTarget.value })}>
              <option value="">all</option>
              {[...changes, ...(change && !changes.some(([id]) => id === change) ? ([[change, change]] as [string, string][]) : [])].map(([id, name]) => (
                <option key={id} value={id}>
                  {plain(name)}
                </option>
              ))}
            </select>
          </label>
        )}
        <span class="views" role="group" aria-label="Shown as">
          <button type="button" aria-pressed={!table} onClick={() => choose({ view: "" })}>
            Chart
          </button>
          <button type="button" aria-pressed={table} onClick={() => choose({ view: "table" })}>
            Table
          </button>
        </span>
      </div>
      <p role="status">{said(of)}</p>
      {of.queues
        .filter((q) => q.paused)
        .map((q) => (
          <p key={q.name} class="state held">
            ‖ {plain(q.name)} is paused: it lands nothing, its builds go on.
          </p>
        ))}
      {of.since && <p class="soft">Shown from {exact(of.since)} on: of before that not everything is kept, or it is too much to show at once.</p>}
      {of.workers.length === 0 ? (
        <Notice title="No worker was there">
          <p>No worker ran a step in this time, and no builder of the pool is at work. The page of services says what is missing.</p>
        </Notice>
      ) : table ? (
        <Tables of={of} change={change} />
      ) : (
        <Chart of={of} change={change} />
      )}
    </>
  )
}

// changesOf are the changes that steps ran for, by title.
function changesOf(of: Timeline): [string, string][] {
  const out = new Map<string, string>()
  for (const w of of.workers) for (const s of w.steps) if (s.change) out.set(s.change, s.title || s.change)
  return [...out].sort((a, b) => a[1].localeCompare(b[1]))
}

// length is a time as people say it, to the tenth of a second where it is short.
export function length(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  const s = Math.round(ms / 1000)
  if (s < 120) return `${s} s`
  if (s < 7200) return `${Math.floor(s / 60)} min${s % 60 ? ` ${s % 60} s` : ""}`
  const m = Math.round(s / 60)
  if (m < 2880) return `${Math.floor(m / 60)} h${m % 60 ? ` ${m % 60} min` : ""}`
  return `${Math.floor(m / 1440)} d${m % 1440 >= 60 ? ` ${Math.floor((m % 1440) / 60)} h` : ""}`
}

export const causes: Record<IdleSum["cause"], string> = {
  not_known: "not known why: a step was open that any worker can run",
  quota: "as many steps of the queue ran as may (quotas.queue)",
  needs: "the open steps needed what few machines have",
  exclusive: "the open steps waited for what another step had to itself",
  dependencies: "the open steps waited for what others leave for them",
  preparing: "no step was open, and the tree of a build was being made",
  no_open_step: "no step was open",
}

// brief are the causes as part of a sentence.
export const brief: Record<IdleSum["cause"], string> = {
  not_known: "for a reason that is not known",
  quota: "by a quota",
  needs: "with open steps that need labels or resources",
  exclusive: "with open steps that wait for exclusive ones",
  dependencies: "with open steps that wait for others",
  preparing: "while a tree was made",
  no_open_step: "with no open step",
}

// said is the timeline in a sentence.
function said(of: Timeline): string {
  const idle = of.idle.reduce((sum, i) => sum + i.ms, 0)
  const all = of.busy_ms + idle
  const out = [plural(of.workers.length, "worker")]
  if (all > 0) out.push(`busy ${Math.round((100 * of.busy_ms) / all)} % of the time`)
  if (of.lost_ms > 0) out.push(`${length(of.lost_ms)} of it lost on steps that left no result`)
  return `${out.join(", ")}.${idle >= 100 ? ` Idle ${of.idle.filter((i) => i.ms >= 100).map((i) => `${length(i.ms)} ${brief[i.cause]}`).join(", ")}.` : ""}`
}

export function stepName(s: StepRun): string {
  if (s.state === "other") return "A step of a queue that you may not read"
  return plain(s.target ?? "")
}

export function forWhom(s: StepRun): string {
  if (s.state === "other") return ""
  if (s.mainline) return "the mainline"
  return s.change ? plain(s.title || s.change) : "a build that is no longer kept"
}

export function outcome(s: StepRun): string {
  if (s.preempted) return "ended for a change that was moved to the front"
  if (s.state === "lost") return "its worker said nothing more of it"
  return s.state === "other" ? "" : s.state.replaceAll("_", " ")
}

// mostLines bounds the tables.
const mostLines = 500

function Tables({ of, change }: { of: Timeline; change: string }) {
  const steps = of.workers.flatMap((w) => w.steps.filter((s) => !change || s.change === change).map((s) => ({ worker: w.worker, s }))).sort((a, b) => b.s.from.localeCompare(a.s.from))
  const idle = of.workers.flatMap((w) => w.idle.map((i) => ({ worker: w.worker, i }))).sort((a, b) => b.i.from.localeCompare(a.i.from))
  const end = Date.parse(of.to)
  const time = (at: string) => (
    <time dateTime={at} title={exact(at)}>
      {clock.format(new Date(at))}
    </time>
  )
  return (
    <>
      <section>
        <h2>Steps, newest first</h2>
        <div class="wide" tabIndex={0} role="group" aria-label="Steps">
          <table class="facts">
            <Head of={["from", "for", "worker", "step", "of", "outcome"]} />
            <tbody>
              {steps.slice(0, mostLines).map(({ worker, s }) => (
                <tr key={`${worker} ${s.from} ${s.target ?? ""}`}>
                  <td>{time(s.from)}</td>
                  <td>{length((s.to ? Date.parse(s.to) : end) - Date.parse(s.from))}</td>
                  <td>
                    <bdi>{plain(worker)}</bdi>
                  </td>
                  <td>
                    <bdi>{stepName(s)}</bdi>
                  </td>
                  <td>{s.change && s.queue ? <a href={changeAt(s.queue, s.change, s.to ?? "")}>{forWhom(s)}</a> : forWhom(s)}</td>
                  <td>{outcome(s)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {steps.length > mostLines && <p class="soft">{plural(steps.length - mostLines, "older step")} more: choose a shorter time.</p>}
      </section>
      <section>
        <h2>Idle times, newest first</h2>
        <div class="wide" tabIndex={0} role="group" aria-label="Idle times">
          <table class="facts">
            <Head of={["from", "for", "worker", "why"]} />
            <tbody>
              {idle.slice(0, mostLines).map(({ worker, i }) => (
                <tr key={`${worker} ${i.from}`}>
                  <td>{time(i.from)}</td>
                  <td>{length(Date.parse(i.to) - Date.parse(i.from))}</td>
                  <td>
                    <bdi>{plain(worker)}</bdi>
                  </td>
                  <td>
                    {causes[i.cause]}
                    {i.needs && `: ${i.needs.map(plain).join(", ")}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {idle.length > mostLines && <p class="soft">{plural(idle.length - mostLines, "older one", "older ones")} more: choose a shorter time.</p>}
      </section>
    </>
  )
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })

function Head({ of }: { of: string[] }) {
  return (
    <thead>
      <tr>
        {of.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  )
}
