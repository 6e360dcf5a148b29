// The chart of a pool's timeline: a row for each worker, a bar for each step, and a line for each idle time.

import { useSignal } from "@preact/signals"
import { useEffect, useMemo, useRef } from "preact/hooks"
import type { IdleTime, StepRun, Timeline, WorkerTimeline } from "./openapi"
import { brief, causes, forWhom, length, outcome, show, stepName } from "./pool"
import { changeAt, choose, query } from "./router"
import { exact, marks, plain, plural } from "./words"

const rowHeight = 32
const barTop = 6
const barHeight = 20
const axis = 24
// narrow is below how many pixels what lies side by side is drawn as one.
const narrow = 3
// mostRows is how many workers are drawn before the reader asks for all.
const mostRows = 40

// hues is how many colours changes have.
const hues = 8

// Item is what is drawn at once: a step, an idle time, or several of them that would be too narrow by themselves.
interface Item {
  key: string
  from: number
  to: number
  step?: StepRun
  idle?: IdleTime
  many?: { steps: number; idle: number }
  // lane of how many: steps of one invocation lie over each other.
  lane: number
  lanes: number
}

// itemsOf are the items of a worker in the order of time.
export function itemsOf(w: WorkerTimeline, from: number, to: number, perPixel: number): Item[] {
  const all: Item[] = [
    ...w.steps.map((s): Item => ({ key: `${w.worker} ${s.from} ${s.target ?? ""}`, from: Math.max(from, Date.parse(s.from)), to: Math.min(to, s.to ? Date.parse(s.to) : to), step: s, lane: 0, lanes: 1 })),
    ...w.idle.map((i): Item => ({ key: `${w.worker} ${i.from} idle`, from: Math.max(from, Date.parse(i.from)), to: Math.min(to, Date.parse(i.to)), idle: i, lane: 0, lanes: 1 })),
  ]
    .filter((i) => i.to > i.from || i.step)
    .sort((a, b) => a.from - b.from || a.to - b.to)
  const out: Item[] = []
  for (const i of all) {
    const last = out[out.length - 1]
    const small = (x: Item) => x.to - x.from < narrow * perPixel
    if (last && small(i) && (small(last) || last.many) && i.from - last.to < perPixel && (i.step || last.step || last.many)) {
      const of = last.many ?? { steps: last.step ? 1 : 0, idle: last.idle ? 1 : 0 }
      if (i.step) of.steps++
      else of.idle++
      out[out.length - 1] = { key: last.key, from: last.from, to: Math.max(last.to, i.to), many: of, lane: 0, lanes: 1 }
    } else out.push(i)
  }
  // Steps of one invocation overlap: each has a lane of its own.
  for (let i = 0; i < out.length; ) {
    let end = out[i]!.to
    let j = i + 1
    while (j < out.length && out[i]!.step && out[j]!.step && out[j]!.from < end) end = Math.max(end, out[j++]!.to)
    const ends: number[] = []
    for (let k = i; k < j; k++) {
      const item = out[k]!
      let lane = ends.findIndex((e) => e <= item.from)
      if (lane < 0) lane = ends.length
      ends[lane] = item.to
      item.lane = lane
    }
    for (let k = i; k < j; k++) out[k]!.lanes = ends.length
    i = j
  }
  return out
}

// hue is the colour of a change: always the same.
function hue(change: string): number {
  let n = 0
  for (const c of change) n = (n * 31 + c.codePointAt(0)!) >>> 0
  return n % hues
}

// paces are the steps of the axis, in seconds.
const paces = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400]
const withSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })
const withMinutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })
const withDay = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" })

export function Chart({ of, change }: { of: Timeline; change: string }) {
  const focused = useSignal("")
  const brush = useSignal<{ from: number; to: number } | undefined>(undefined)
  const width = useSignal(1200)
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const seen = new ResizeObserver((entries) => (width.value = Math.max(320, entries[0]!.contentRect.width)))
    seen.observe(box.current!)
    return () => seen.disconnect()
  }, [])
  const from = Date.parse(of.from)
  const to = Date.parse(of.to)
  const all = query.value.get("rows") === "all"
  const workers = all ? of.workers : of.workers.slice(0, mostRows)
  const gutter = Math.min(width.value < 600 ? 88 : 160, 16 + 7.5 * Math.max(...workers.map((w) => [...w.worker].length)))
  const perPixel = (to - from) / (width.value - gutter - 8)
  const x = (t: number) => gutter + (t - from) / perPixel
  const rows = useMemo(() => workers.map((w) => itemsOf(w, from, to, perPixel)), [of, all, perPixel])
  const pace = 1000 * (paces.find((p) => (p * 1000) / perPixel >= 88) ?? paces[paces.length - 1]!)
  const zone = new Date(from).getTimezoneOffset() * 60_000
  const ticks: number[] = []
  for (let t = Math.ceil((from - zone) / pace) * pace + zone; t <= to; t += pace) ticks.push(t)
  const height = rows.length * rowHeight + axis
  const picked = query.value.get("step") ?? ""
  const everything = rows.flat()
  const shown = everything.find((i) => i.key === (focused.value || picked))
  const reached = (everything.find((i) => i.key === picked) ?? everything[0])?.key
  const focus = (i: Item | undefined) => i && box.current?.querySelector<SVGElement>(`[data-item="${CSS.escape(i.key)}"]`)?.focus()
  const move = (e: KeyboardEvent, row: number, n: number) => {
    const here = rows[row]![n]!
    const near = (r: Item[] | undefined) => r?.find((i) => i.to > here.from) ?? r?.[r.length - 1]
    let to: Item | undefined
    if (e.key === "ArrowRight") to = rows[row]![n + 1]
    else if (e.key === "ArrowLeft") to = rows[row]![n - 1]
    else if (e.key === "ArrowDown") to = near(rows.slice(row + 1).find((r) => r.length > 0))
    else if (e.key === "ArrowUp") to = near(rows.slice(0, row).findLast((r) => r.length > 0))
    if (!to) return
    e.preventDefault()
    focus(to)
  }
  const zoom = (e: KeyboardEvent) => {
    if (e.key !== "+" && e.key !== "-") return
    const middle = shown ? (shown.from + shown.to) / 2 : (from + to) / 2
    const half = ((to - from) / 2) * (e.key === "+" ? 0.5 : 2)
    show(middle - half, middle + half)
  }
  // A mouse that is drawn over the chart chooses the time.
  const draw = (e: PointerEvent) => {
    if (e.button !== 0 || e.pointerType === "touch") return
    const left = box.current!.firstElementChild!.getBoundingClientRect().left
    const time = (e: PointerEvent) => Math.min(to, Math.max(from, from + (e.clientX - left - gutter) * perPixel))
    const begun = time(e)
    const follow = (e: PointerEvent) => {
      const now = time(e)
      if (brush.value || Math.abs(now - begun) > 8 * perPixel) brush.value = { from: Math.min(begun, now), to: Math.max(begun, now) }
    }
    const end = () => {
      removeEventListener("pointermove", follow)
      removeEventListener("pointerup", end)
      const b = brush.value
      brush.value = undefined
      if (!b) return
      // What was drawn over is not clicked.
      addEventListener("click", (e) => (e.stopPropagation(), e.preventDefault()), { capture: true, once: true })
      setTimeout(() => show(b.from, b.to))
    }
    addEventListener("pointermove", follow)
    addEventListener("pointerup", end)
  }
  return (
    <div class="graph">
      <Legend of={of} />
      <div class="canvas workers" ref={box} role="group" aria-label="Timeline of the workers. The arrow keys go from step to step: left and right in time, up and down between workers; plus and minus zoom." onKeyDown={zoom} onPointerDown={draw}>
        <svg width={width.value} height={height}>
          <defs>
            <pattern id="runs" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="2" height="4" class="stripe" />
            </pattern>
          </defs>
          {ticks.map((t) => (
            <g key={t}>
              <line class="base" x1={x(t)} x2={x(t)} y1={0} y2={height - 20} />
              <text x={Math.min(width.value - 32, Math.max(gutter + 24, x(t)))} y={height - 6}>
                {(pace < 60_000 ? withSeconds : pace < 86_400_000 && to - from <= 86_400_000 ? withMinutes : withDay).format(t)}
              </text>
            </g>
          ))}
          {of.since && <rect class="unkept" x={gutter} y={0} width={Math.max(0, x(Date.parse(of.since)) - gutter)} height={height - axis} />}
          {rows.map((items, row) => (
            <g key={workers[row]!.worker} transform={`translate(0 ${row * rowHeight})`}>
              <text class="name" x={8} y={20}>
                <title>{plain(workers[row]!.worker)}</title>
                {cut(plain(workers[row]!.worker), Math.floor((gutter - 8) / 7.2))}
              </text>
              {items.map((i, n) => (
                <Mark
                  key={i.key}
                  of={i}
                  x={x(i.from)}
                  width={Math.max(1.5, (i.to - i.from) / perPixel)}
                  dim={change !== "" && i.step?.change !== change}
                  picked={i.key === picked}
                  reached={i.key === reached}
                  onMove={(e) => move(e, row, n)}
                  say={(on) => (focused.value = on ? i.key : "")}
                />
              ))}
            </g>
          ))}
          <g class="labels" aria-hidden="true">
            {rows.map((items, row) => (
              <g key={workers[row]!.worker} transform={`translate(0 ${row * rowHeight})`}>
                {items.map((i) => (
                  <Label key={i.key} of={i} x={x(i.from)} width={(i.to - i.from) / perPixel} dim={change !== "" && i.step?.change !== change} />
                ))}
              </g>
            ))}
          </g>
          {brush.value && <rect class="brush" x={x(brush.value.from)} y={0} width={x(brush.value.to) - x(brush.value.from)} height={height - axis} />}
        </svg>
      </div>
      {of.workers.length > mostRows && (
        <p>
          <button type="button" onClick={() => choose({ rows: all ? "" : "all" })}>
            {all ? `Show ${mostRows} workers` : `Show all ${of.workers.length.toLocaleString()} workers`}
          </button>
        </p>
      )}
      <div class="said" aria-live="polite">
        {shown ? <Said of={shown} /> : <span class="soft">Point at a step, or go to it with the keys: what it was is said here. Draw over a part of the chart to zoom in.</span>}
      </div>
    </div>
  )
}

const cut = (text: string, most: number) => ([...text].length > most ? `…${[...text].slice(-Math.max(1, most - 1)).join("")}` : text)

// sentence is what an item is, in words.
function sentence(i: Item): string {
  const long = length(i.to - i.from)
  if (i.many) return `${plural(i.many.steps, "step")}${i.many.idle > 0 ? ` and ${plural(i.many.idle, "idle time")}` : ""} in ${long}, too close to draw: choose to zoom in.`
  if (i.idle) return `Idle for ${long}: ${causes[i.idle.cause]}${i.idle.needs ? ` (${i.idle.needs.map(plain).join(", ")})` : ""}.`
  const s = i.step!
  if (s.state === "other") return `${stepName(s)}, ${long}.`
  return `${stepName(s)} for ${forWhom(s)}: ${outcome(s)}${s.state === "running" ? ` for ${long}` : ` after ${long}`}${(s.attempt ?? 1) > 1 ? `, attempt ${s.attempt}` : ""}.`
}

function Mark({ of, x, width, dim, picked, reached, onMove, say }: { of: Item; x: number; width: number; dim: boolean; picked: boolean; reached: boolean; onMove: (e: KeyboardEvent) => void; say: (on: boolean) => void }) {
  const top = barTop + (barHeight * of.lane) / of.lanes
  const high = barHeight / of.lanes - (of.lanes > 1 ? 1 : 0)
  const s = of.step
  const kind = of.many ? "many" : of.idle ? `idle ${of.idle.cause}` : `run ${s!.state} ${s!.state === "other" ? "" : s!.mainline || !s!.change ? "mainline" : `hue${hue(s!.change)}`}`
  // One that was ended has a cut edge.
  const ended = s?.state === "aborted" || s?.state === "lost"
  const right = x + width
  const cutEdge = Math.min(6, width / 2)
  const path = ended ? `M${x} ${top}H${right}L${right - cutEdge} ${top + high / 4}L${right} ${top + high / 2}L${right - cutEdge} ${top + (3 * high) / 4}L${right} ${top + high}H${x}Z` : `M${x} ${top}H${right}V${top + high}H${x}Z`
  return (
    <a
      href={`?step=${encodeURIComponent(of.key)}`}
      class={`item ${kind}${dim ? " dim" : ""}${picked ? " picked" : ""}`}
      data-item={of.key}
      tabindex={reached ? 0 : -1}
      aria-label={sentence(of)}
      onFocus={() => say(true)}
      onMouseEnter={() => say(true)}
      onMouseLeave={() => say(false)}
      onKeyDown={onMove}
      onDragStart={(e) => e.preventDefault()}
      onClick={(e) => {
        e.preventDefault()
        if (of.many) show(of.from - (of.to - of.from) / 2, of.to + (of.to - of.from) / 2)
        else choose({ step: picked ? "" : of.key })
      }}
    >
      <rect class="hit" x={x} y={barTop - 2} width={width} height={barHeight + 4} />
      {of.idle ? <line class="none" x1={x + 1} x2={Math.max(x + 1.5, right - 1)} y1={barTop + barHeight / 2} y2={barTop + barHeight / 2} /> : <path class="bar" d={path} />}
      {s?.state === "running" && <path class="stripes" d={path} fill="url(#runs)" />}
      {s && (s.state === "failed" || s.state === "timed_out") && <rect class="foot" x={x} y={top + high - 4} width={width} height={4} />}
    </a>
  )
}

// Label is what is written on an item. It lies over the marks: what they are named is more than what there is room for.
function Label({ of, x, width, dim }: { of: Item; x: number; width: number; dim: boolean }) {
  if (of.lanes > 1 || of.many) return null
  const s = of.step
  const room = Math.floor((width - 8) / 6.6)
  const y = barTop + 14
  if (of.idle) {
    const why = of.idle.cause === "no_open_step" ? "" : of.idle.cause === "needs" ? `needs ${of.idle.needs?.map(plain).join(", ") ?? "more"}` : of.idle.cause.replaceAll("_", " ")
    return why === "" || room < why.length ? null : (
      <text class="why" x={x + width / 2} y={y}>
        {why}
      </text>
    )
  }
  const mark = s && s.state !== "passed" && s.state !== "running" && s.state !== "other" ? (s.preempted ? "↑" : (marks[s.state] ?? "!")) : ""
  const text = room >= 3 ? short(`${mark} ${stepName(s!)}`.trim(), room) : width >= 12 ? mark : ""
  return text === "" ? null : (
    <text class={dim ? "what dim" : "what"} x={x + (room >= 3 ? 5 : 2)} y={y}>
      {text}
    </text>
  )
}

const short = (text: string, most: number) => ([...text].length > most ? `${[...text].slice(0, Math.max(1, most - 1)).join("")}…` : text)

function Said({ of }: { of: Item }) {
  const s = of.step
  return (
    <>
      <bdi>{sentence(of)}</bdi>
      {s?.reason && s.state !== "passed" && !s.preempted && (
        <>
          {" "}
          <bdi>{plain(s.reason)}</bdi>
        </>
      )}
      <span class="soft">
        {" "}
        {exact(new Date(of.from).toISOString())} to {of.step && !of.step.to ? "now" : exact(new Date(of.to).toISOString())}.
      </span>
      {s?.change && s.queue && (
        <span>
          {" "}
          <a href={changeAt(s.queue, s.change, s.to ?? "")}>The change {s.to ? "at that moment" : "now"}</a>
        </span>
      )}
    </>
  )
}

function Legend({ of }: { of: Timeline }) {
  const kinds: [string, string][] = [
    ["run passed hue0", "passed; a colour for each change"],
    ["run passed mainline", "of the mainline itself"],
    ["run failed hue0", "failed"],
    ["run aborted hue0", "ended early, wasted"],
    ["run running hue0", "running"],
    ...of.idle.map((i): [string, string] => [`idle ${i.cause}`, `idle ${brief[i.cause]}`]),
  ]
  return (
    <ul class="legend workers" aria-label="What the marks mean">
      {kinds.map(([kind, name]) => (
        <li key={kind}>
          <svg width={24} height={12} aria-hidden="true">
            <g class={`item ${kind}`}>
              {kind.startsWith("idle") ? <line class="none" x1={1} x2={23} y1={6} y2={6} /> : <path class="bar" d={kind.includes("aborted") ? "M1 1H23L19 4L23 6L19 9L23 11H1Z" : "M1 1H23V11H1Z"} />}
              {kind.includes("running") && <path class="stripes" d="M1 1H23V11H1Z" fill="url(#runs)" />}
              {kind.includes("failed") && <rect class="foot" x={1} y={8} width={22} height={3} />}
            </g>
          </svg>
          {name}
        </li>
      ))}
    </ul>
  )
}
