// The timeline of a change: what it waited for and when, its builds, and its steps over the workers.

import { useSignal } from "@preact/signals"
import { useEffect, useMemo, useRef } from "preact/hooks"
import { assumes, live, logged, runsOf } from "./facts"
import { logName } from "./log"
import type { Build, Change, Step } from "./openapi"
import { choose } from "./router"
import { final } from "./store"
import { duration, exact, marks, now, plain, plural, sentence } from "./words"

// mostRows and mostSteps bound what is drawn.
const mostRows = 16
const mostSteps = 400
const rowHeight = 40
const barHeight = 14
const margin = 8

interface Bar {
  key: string
  from: number
  to: number
  // state is what its colour and mark say, and says what it is, in words.
  state: string
  says: string
  log?: { log: string; in: string }
}

interface Row {
  name: string
  bars: Bar[]
}

const at = (time: string | undefined) => (time ? Date.parse(time) : NaN)

// phases are what the change was at, one after the other, without gaps.
function phases(of: Change, end: number): Bar[] {
  const begin = at(of.admitted_at)
  const own = of.timeline.filter((e) => !e.earlier)
  const builds = (of.builds ?? []).flatMap((b) => {
    const from = beganOf(b)
    return from === undefined ? [] : [[Math.min(from, endOf(b, end)), endOf(b, end)] as const]
  })
  // The event may be forgotten. What is built was analysed, and so is what does not wait for that.
  const known = at(own.find((e) => e.kind === "analysed")?.at)
  const built = (of.builds ?? []).map((b) => at(b.scheduled_at)).filter((from) => from >= begin)
  const analysed = !Number.isNaN(known) ? known : built.length > 0 ? Math.min(...built) : of.reasons.some((r) => r.code === "analysis") ? NaN : begin
  const held: [number, number][] = []
  const landing: [number, number][] = []
  for (const e of own) {
    const time = at(e.at)
    if (e.kind === "held") held.push([time, end])
    if (e.kind === "released" && held.length > 0) held[held.length - 1]![1] = time
    if (e.kind === "landing") landing.push([time, end])
    if (e.kind === "land_void" && landing.length > 0) landing[landing.length - 1]![1] = time
  }
  const within = (list: readonly (readonly [number, number])[], t: number) => list.filter(([from, to]) => from <= t && t < to).length
  const cuts = [begin, end, analysed, ...[...builds, ...held, ...landing].flat()].filter((t) => t >= begin && t <= end).sort((a, b) => a - b)
  const out: Bar[] = []
  for (let i = 1; i < cuts.length; i++) {
    const [from, to] = [cuts[i - 1]!, cuts[i]!]
    if (from === to) continue
    const running = within(builds, from)
    const state = !(from >= analysed) ? "analysing" : within(landing, from) ? "landing" : running ? "running" : within(held, from) ? "held" : "waiting"
    let since = from
    const before = out[out.length - 1]
    // Less than a second without a build is no wait that anybody means.
    if (before && (before.state === "waiting" || before.state === "held") && before.state !== state && before.to - before.from < 1000) since = out.pop()!.from
    const last = out[out.length - 1]
    if (last?.state === state) last.to = to
    else out.push({ key: `${state} ${since}`, from: since, to, state, says: "" })
  }
  const words: Record<string, string> = { analysing: "Analysed", running: "Built", held: "Held, and not built", landing: "Landed on the mainline", waiting: "Waited, and not built" }
  for (const p of out) {
    const goesOn = p.to === end && !final(of.state)
    p.says = `${words[p.state]} for ${duration((p.to - p.from) / 1000)}${goesOn ? ` so far: ${plain(of.why)}` : "."}`
  }
  return out
}

// beganOf is when the first step of a build began; until then the build waits for a worker. One that passed or failed by what others ran
// began at once, and any other has not.
function beganOf(b: Build): number | undefined {
  const scheduled = at(b.scheduled_at)
  const starts = runsOf(b).filter((s) => s.state === "running" || at(s.finished_at) > scheduled).map((s) => (s.state === "running" ? at(s.started_at) : at(s.finished_at) - (s.duration_ms ?? 0)))
  if (starts.length > 0) return Math.max(scheduled, Math.min(...starts))
  return b.state === "passed" || b.state === "failed" ? scheduled : undefined
}

const endOf = (b: Build, end: number) => Math.min(end, at(b.ended_at) || end)

function rowsOf(of: Change, end: number): { rows: Row[]; before: number; left: number; builds: number } {
  const begin = at(of.admitted_at)
  const builds = [...(of.builds ?? [])].sort((a, b) => at(a.scheduled_at) - at(b.scheduled_at))
  const rows: Row[] = [{ name: "the change", bars: phases(of, end) }]
  const decided = of.timeline.filter((e) => !e.earlier && decisions.includes(e.kind))
  if (decided.length > 0) {
    rows.push({ name: "decisions", bars: decided.slice(-mostSteps).map((e, i) => ({ key: `decision ${i}`, from: at(e.at), to: at(e.at), state: e.kind, says: `${plain(e.text)} (${exact(e.at)})` })) })
  }
  for (const b of builds.slice(-mostRows)) {
    const [from, to] = [at(b.scheduled_at), endOf(b, end)]
    const began = beganOf(b) ?? to
    const waited = duration((Math.min(began, to) - from) / 1000)
    const state = b.state.replaceAll("_", " ")
    const bars: Bar[] = []
    if (began - from >= 1000) bars.push({ key: `${b.build} waits`, from, to: Math.min(began, to), state: "waiting", says: `A build ${assumes(b, of)}: ${began < to || live(b) ? `waits for a worker, ${waited}` : `${state} after it waited for a worker, ${waited}`}.` })
    const begins = bars.length > 0 ? began : from
    if (begins < to || bars.length === 0) bars.push({ key: b.build, from: begins, to, state: b.state, says: `A build ${assumes(b, of)}: ${state}, ${b.steps_done} of ${plural(b.steps_total, "step")} done, ${duration((to - begins) / 1000)}.` })
    rows.push({ name: `built ${assumes(b, of)}`, bars })
  }
  const workers = new Map<string, Bar[]>()
  const seen = new Set<string>()
  let before = 0
  let left = 0
  const add = (s: Step, place: string) => {
    const key = `${s.target} ${logName(s)}`
    if (!s.worker || seen.has(key)) return
    seen.add(key)
    const to = s.state === "running" ? end : at(s.finished_at)
    const from = s.state === "running" ? at(s.started_at) : to - (s.duration_ms ?? 0)
    if (!(to > begin)) before++
    else if (seen.size - before > mostSteps) left++
    else {
      const bars = workers.get(s.worker) ?? []
      if (bars.length === 0) workers.set(s.worker, bars)
      bars.push({ key, from: Math.max(from, begin), to, state: s.state, says: `${plain(s.target)} on ${plain(s.worker)}: ${s.state.replaceAll("_", " ")}, ${duration((to - from) / 1000)}${(s.attempt ?? 0) > 1 ? `, attempt ${s.attempt}` : ""}, from ${exact(new Date(from).toISOString())}.`, log: logged(s) ? { log: logName(s), in: place } : undefined })
    }
  }
  for (const b of builds) for (const s of runsOf(b)) add(s, b.build)
  for (const s of of.landing?.proof ?? []) add(s, "proof")
  const named = [...workers].sort((a, b) => a[0].localeCompare(b[0], undefined, { numeric: true }))
  for (const [name, bars] of named.slice(0, mostRows)) rows.push({ name: `worker ${plain(name)}`, bars: bars.sort((a, b) => a.from - b.from) })
  for (const [, bars] of named.slice(mostRows)) left += bars.length
  return { rows, before, left, builds: Math.max(0, builds.length - mostRows) }
}

// decisions are kinds of events that are drawn.
const decisions = ["decided", "refused", "land_void", "landed", "rejected", "ejected", "cancelled", "dropped", "retried", "moved", "held", "released"]

// paces are how far marks of the axis are from each other, in seconds.
const paces = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000, 7_776_000, 31_536_000]
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" })
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" })
const clockWithSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" })

// Times draws when what happened to a change.
export function Times({ of }: { of: Change }) {
  const box = useRef<HTMLDivElement>(null)
  const width = useSignal(600)
  const focused = useSignal("")
  useEffect(() => {
    const seen = new ResizeObserver((entries) => (width.value = Math.max(240, entries[0]!.contentRect.width)))
    seen.observe(box.current!)
    return () => seen.disconnect()
  }, [])
  const begin = at(of.admitted_at)
  const end = Math.max(begin + 1000, at(of.finished_at) || now.value)
  const { rows, before, left, builds } = useMemo(() => rowsOf(of, end), [of, end])
  const all = rows.flatMap((r) => r.bars)
  const scale = (width.value - 2 * margin) / (end - begin)
  const x = (t: number) => margin + (Math.min(end, Math.max(begin, t)) - begin) * scale
  const pace = 1000 * (paces.find((p) => p * 1000 * scale >= 88) ?? paces[paces.length - 1]!)
  const zone = new Date(begin).getTimezoneOffset() * 60_000
  const ticks: number[] = []
  for (let t = Math.ceil((begin - zone) / pace) * pace + zone; t <= end; t += pace) ticks.push(t)
  const fits = ticks.filter((t) => x(t) >= 40 && x(t) <= width.value - 40)
  const labelled = fits.length > 0 ? fits : ticks.slice(0, 1)
  const height = rows.length * rowHeight + 24
  const one = all.find((b) => b.key === focused.value)
  const first = one?.key ?? all[0]?.key
  const focus = (bar: Bar | undefined) => bar && box.current?.querySelector<SVGElement>(`[data-bar="${CSS.escape(bar.key)}"]`)?.focus()
  const move = (e: KeyboardEvent, row: number, n: number) => {
    const bars = rows[row]!.bars
    const to = e.key === "ArrowRight" ? bars[n + 1] : e.key === "ArrowLeft" ? bars[n - 1] : e.key === "ArrowDown" ? rows.slice(row + 1).find((r) => r.bars.length > 0)?.bars[0] : e.key === "ArrowUp" ? rows.slice(0, row).findLast((r) => r.bars.length > 0)?.bars[0] : undefined
    if (!to) return
    e.preventDefault()
    focus(to)
  }
  return (
    <section>
      <h2>When</h2>
      <div class="canvas times" ref={box} role="group" aria-label="Timeline of the change. The arrow keys go from bar to bar: left and right in time, up and down between rows.">
        <svg width={width.value} height={height}>
          {ticks.map((t) => (
            <g key={t}>
              <line class="base" x1={x(t)} x2={x(t)} y1={0} y2={height - 20} />
              {labelled.includes(t) && (
                <text x={Math.min(width.value - 40, Math.max(40, x(t)))} y={height - 6}>
                  {(pace < 60_000 ? clockWithSeconds : (t - zone) % 86_400_000 === 0 && end - begin > 86_400_000 ? day : clock).format(t)}
                </text>
              )}
            </g>
          ))}
          {rows.map((row, i) => (
            <g key={row.name + i} transform={`translate(0 ${i * rowHeight})`}>
              <text class="name" x={margin} y={15} aria-hidden="true">
                {cut(row.name, Math.floor(width.value / 7))}
              </text>
              {row.bars.map((b, n) => (
                <Drawn
                  key={b.key}
                  of={b}
                  x={x(b.from)}
                  width={Math.max(3, x(b.to) - x(b.from) - 1)}
                  reached={b.key === first}
                  onMove={(e) => move(e, i, n)}
                  say={(on) => (focused.value = on ? b.key : "")}
                />
              ))}
            </g>
          ))}
        </svg>
      </div>
      <p class="said" aria-live="polite">
        {one ? <bdi>{one.says}</bdi> : <span class="soft">{sentence(rows[0]!.bars.map((b) => b.says.replace(/[.:].*$/, "").toLowerCase()).join(", "))} Point at a bar, or go to it with the keys, for more.</span>}
      </p>
      {(before > 0 || left > 0 || builds > 0) && (
        <p class="soft">
          {builds > 0 && `${plural(builds, "earlier build")} ${builds === 1 ? "is" : "are"} not drawn. `}
          {before > 0 && `${plural(before, "step")} had run before the change came. `}
          {left > 0 && `${plural(left, "step")} more ${left === 1 ? "is" : "are"} not drawn.`}
        </p>
      )}
    </section>
  )
}

const cut = (text: string, most: number) => (text.length > most ? `${[...text].slice(0, Math.max(1, most - 1)).join("")}…` : text)

// Drawn is a bar. One with a log leads to it.
function Drawn({ of, x, width, reached, onMove, say }: { of: Bar; x: number; width: number; reached: boolean; onMove: (e: KeyboardEvent) => void; say: (on: boolean) => void }) {
  const parts = (
    <>
      <rect class="hit" x={x - 1} y={18} width={width + 2} height={barHeight + 4} />
      <rect class="bar" x={x} y={20} width={width} height={barHeight} />
      {width >= 16 && (
        <text class="mark" x={x + 8} y={31} aria-hidden="true">
          {marks[of.state] ?? ""}
        </text>
      )}
    </>
  )
  const shared = {
    class: `node time ${of.state}`,
    "data-bar": of.key,
    "aria-label": of.says,
    onFocus: () => say(true),
    onMouseEnter: () => say(true),
    onMouseLeave: () => say(false),
    onKeyDown: onMove,
  }
  if (!of.log) {
    return (
      <g role="img" tabindex={reached ? 0 : -1} {...shared}>
        {parts}
      </g>
    )
  }
  return (
    <a
      href={`?${new URLSearchParams(of.log)}`}
      tabindex={reached ? 0 : -1}
      {...shared}
      onClick={(e) => {
        e.preventDefault()
        choose({ ...of.log!, line: "", fold: "" })
        requestAnimationFrame(() => document.querySelector(".log")?.scrollIntoView({ block: "center" }))
      }}
    >
      {parts}
    </a>
  )
}
