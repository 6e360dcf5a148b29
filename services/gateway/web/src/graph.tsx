// The graph of a queue: its order from left to right, a lane for each group of changes that meet, an arc for each conflict, and above
// each change its possible futures.

import { computed, useComputed, useSignal, type ReadonlySignal, type Signal } from "@preact/signals"
import { useEffect, useMemo, useRef } from "preact/hooks"
import { Reading } from "./frame"
import type { Graph, GraphFuture, GraphNode } from "./openapi"
import { choose, query } from "./router"
import { graphOf, watch } from "./store"
import { plain, plural, shown } from "./words"

// foldFrom is from how many changes on lanes are drawn as densities, and part how many a part of the queue shows.
const foldFrom = 200
const part = 120

// Lanes and arcs are drawn on this grid, in pixels.
const margin = 24
const cell = 8
const tallest = 6 * cell
const arcs = 48

interface Node extends GraphNode {
  id: string
}

interface Lane {
  nodes: Node[]
  // alone: its changes meet no other.
  alone: boolean
}

// lanesOf groups changes that meet, directly or through others, the busiest group first; those that meet none are the last lane.
export function lanesOf(nodes: Node[]): Lane[] {
  const parent = new Map<string, string>(nodes.map((n) => [n.id, n.id]))
  const root = (id: string): string => {
    let at = id
    for (let up = parent.get(at)!; up !== at; up = parent.get(at)!) {
      parent.set(at, parent.get(up)!)
      at = up
    }
    return at
  }
  for (const n of nodes) for (const e of n.ahead ?? []) if (parent.has(e.change)) parent.set(root(n.id), root(e.change))
  const groups = new Map<string, Node[]>()
  for (const n of nodes) {
    const at = root(n.id)
    const group = groups.get(at)
    if (group) group.push(n)
    else groups.set(at, [n])
  }
  const all = [...groups.values()]
  const meet = all.filter((g) => g.length > 1).sort((a, b) => b.length - a.length)
  const lanes: Lane[] = meet.map((g) => ({ nodes: g, alone: false }))
  const alone = all.filter((g) => g.length === 1).map((g) => g[0]!)
  if (alone.length > 0) lanes.push({ nodes: alone, alone: true })
  return lanes
}

export function QueueGraph({ queue }: { queue: string }) {
  useEffect(() => watch({ graph: queue }), [queue])
  const graph = graphOf(queue).value
  if (!graph) return <Reading what="the graph" />
  const count = Object.keys(graph.changes).length
  if (count === 0) return <p class="soft">No change is in the queue.</p>
  return <Drawn graph={graph} count={count} />
}

// made holds the node of each change that the stream has not changed since, so that only the others are drawn again.
const made = new WeakMap<GraphNode, Node>()

function nodeOf(id: string, n: GraphNode): Node {
  let node = made.get(n)
  if (!node) made.set(n, (node = { id, ...n }))
  return node
}

function Drawn({ graph, count }: { graph: Graph; count: number }) {
  const nodes = useMemo(() => Object.entries(graph.changes).map(([id, n]) => nodeOf(id, n)).sort((a, b) => a.position - b.position), [graph])
  const from = Math.min(Math.floor(Number(query.value.get("from"))), Math.floor((count - 1) / part) * part + 1)
  const zoomed = from > 0 && count > foldFrom
  if (count > foldFrom && !zoomed) return <Densities nodes={nodes} />
  const shown = zoomed ? nodes.slice(from - 1, from - 1 + part) : nodes
  return (
    <>
      {zoomed && (
        <p class="line">
          <button type="button" onClick={() => choose({ from: "" })}>
            All {count.toLocaleString()}
          </button>
          <button type="button" disabled={from <= 1} onClick={() => choose({ from: String(Math.max(1, from - part)) })}>
            Earlier
          </button>
          <button type="button" disabled={from + part > count} onClick={() => choose({ from: String(from + part) })}>
            Later
          </button>
          <span class="soft">
            Places {from} to {Math.min(count, from + part - 1)}
          </span>
        </p>
      )}
      <Lanes key={zoomed ? from : 0} nodes={shown} />
    </>
  )
}

// Drawing is what the marks of changes have in common.
interface Drawing {
  nodes: Node[]
  byID: Map<string, Node>
  // behind has the changes that meet one from behind it.
  behind: Map<string, string[]>
}

// Pointed is the change that is pointed at or opened, "" for none, and those that are lit with it.
type Pointed = ReadonlySignal<{ one: string; lit: Set<string> }>

function drawingOf(nodes: Node[]): Drawing {
  const behind = new Map<string, string[]>()
  for (const n of nodes)
    for (const e of n.ahead ?? []) {
      const list = behind.get(e.change)
      if (list) list.push(n.id)
      else behind.set(e.change, [n.id])
    }
  return { nodes, byID: new Map(nodes.map((n) => [n.id, n])), behind }
}

// atOnce is how many changes are drawn in one task: more would hold up what the reader does.
const atOnce = 20

function Lanes({ nodes }: { nodes: Node[] }) {
  const focused = useSignal("")
  const box = useRef<HTMLDivElement>(null)
  // Nothing is drawn before the width is known, or it would be drawn twice.
  const width = useSignal(0)
  const drawn = useSignal(atOnce)
  useEffect(() => {
    const seen = new ResizeObserver((entries) => (width.value = Math.max(320, entries[0]!.contentRect.width)))
    seen.observe(box.current!)
    return () => seen.disconnect()
  }, [])
  const measured = width.value > 0
  useEffect(() => {
    if (!measured || drawn.value >= nodes.length) return
    const next = setTimeout(() => (drawn.value += atOnce))
    return () => clearTimeout(next)
  }, [measured, drawn.value, nodes.length])
  const of = useMemo(() => drawingOf(nodes), [nodes])
  const drawing = useSignal(of)
  if (drawing.peek() !== of) drawing.value = of
  const pointed: Pointed = useComputed(() => {
    const { byID, behind } = drawing.value
    const one = focused.value || query.value.get("open") || ""
    const lit = new Set<string>()
    const node = byID.get(one)
    if (!node) return { one: "", lit }
    lit.add(one)
    for (const e of node.ahead ?? []) lit.add(e.change)
    for (const id of behind.get(one) ?? []) lit.add(id)
    return { one, lit }
  })
  const lanes = useMemo(() => lanesOf(nodes), [nodes])
  const step = Math.min(136, Math.max(16, (width.value - 2 * margin) / nodes.length))
  const total = Math.max(width.value, nodes.length * step + 2 * margin)
  const place = new Map(nodes.map((n, i) => [n.id, margin + (i + 0.5) * step]))
  const begun = new Set(nodes.slice(0, drawn.value))
  const labelled = step >= 72
  const heights = lanes.map((l) => tallest + 24 + (l.alone ? 8 : arcs) + (labelled ? 24 : 16))
  const tops = heights.map((_, i) => heights.slice(0, i).reduce((a, b) => a + b, 0))
  return (
    <div class="graph">
      <Legend />
      <div class="canvas" ref={box} role="group" aria-label="Graph of the queue. The arrow keys go from change to change: left and right in the queue's order, up and down along conflicts.">
        <svg width={measured ? total : 0} height={tops[tops.length - 1]! + heights[heights.length - 1]!}>
          <defs>
            <pattern id="running" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="2" height="4" class="hatch" />
            </pattern>
          </defs>
          {measured &&
            lanes.map((lane, i) => (
              <g key={lane.nodes[0]!.id} transform={`translate(0 ${tops[i]! + tallest + 16})`}>
                <line class="base" x1={margin} x2={total - margin} y1={0} y2={0} />
                <text class="name" x={margin} y={-tallest - 4}>
                  {lane.alone ? `${plural(lane.nodes.length, "change")} that ${lane.nodes.length === 1 ? "meets" : "meet"} no other` : `${lane.nodes.length} changes that meet`}
                </text>
                {lane.nodes.map((n) => begun.has(n) && n.ahead && <Arcs key={`${n.id} arcs`} n={n} place={place} below={labelled ? 42 : 24} drawing={drawing} pointed={pointed} />)}
                {lane.nodes.map((n) => begun.has(n) && <Mark key={n.id} n={n} x={place.get(n.id)!} step={step} says={said(n, of.byID, of.behind)} drawing={drawing} pointed={pointed} focused={focused} />)}
              </g>
            ))}
        </svg>
      </div>
      <Said drawing={drawing} pointed={pointed} />
    </div>
  )
}

function Said({ drawing, pointed }: { drawing: ReadonlySignal<Drawing>; pointed: Pointed }) {
  const { byID, behind } = drawing.value
  const node = byID.get(pointed.value.one)
  return (
    <p class="said" aria-live="polite">
      {node ? <bdi>{said(node, byID, behind)}</bdi> : <span class="soft">Point at a change, or go to it with the keys: what it waits for and what waits for it is said here.</span>}
    </p>
  )
}

// Arcs are the conflicts of a change with those ahead of it, below what stands under their marks. What they are is said once one is pointed at.
function Arcs({ n, place, below, drawing, pointed }: { n: Node; place: Map<string, number>; below: number; drawing: ReadonlySignal<Drawing>; pointed: Pointed }) {
  const ahead = n.ahead!.filter((e) => place.has(e.change))
  const x2 = place.get(n.id)!
  const ways = ahead.map((e) => {
    const x1 = place.get(e.change)!
    const deep = Math.min(arcs, 12 + (x2 - x1) / 5)
    return `M${x1} ${below}C${x1} ${below + deep},${x2} ${below + deep},${x2} ${below}`
  })
  return useMemo(
    () => (
      <>
        {ahead.map((e, i) => (
          <path
            key={e.change}
            class={computed(() => {
              const { one } = pointed.value
              return `arc${one === "" ? "" : n.id === one || e.change === one ? " lit" : " dim"}${e.merge_conflict ? " merge" : ""}`
            })}
            d={ways[i]}
            onMouseEnter={(at) => titled(at.currentTarget, edgeText(drawing.peek().byID.get(e.change)!, n, e))}
          />
        ))}
      </>
    ),
    [n, ways.join()],
  )
}

function titled(of: SVGElement, text: string) {
  const title = document.createElementNS("http://www.w3.org/2000/svg", "title")
  title.textContent = text
  of.replaceChildren(title)
}

interface MarkOf {
  n: Node
  x: number
  step: number
  says: string
  drawing: ReadonlySignal<Drawing>
  pointed: Pointed
  focused: Signal<string>
}

// Mark is a change, with its futures above it.
function Mark({ n, x, step, says, drawing, pointed, focused }: MarkOf) {
  const lit = useComputed(() => (n.id === pointed.value.one ? "one" : pointed.value.one !== "" && !pointed.value.lit.has(n.id) ? "dim" : ""))
  const first = useComputed(() => ((pointed.value.one || drawing.value.nodes[0]!.id) === n.id ? 0 : -1))
  const move = (e: KeyboardEvent) => {
    const { nodes, byID, behind } = drawing.peek()
    const at = nodes.findIndex((o) => o.id === n.id)
    const to =
      e.key === "ArrowRight" ? nodes[at + 1]?.id : e.key === "ArrowLeft" ? nodes[at - 1]?.id : e.key === "ArrowUp" ? n.ahead?.[0]?.change : e.key === "ArrowDown" ? behind.get(n.id)?.[0] : undefined
    if (!to || !byID.has(to)) return
    e.preventDefault()
    focused.value = to
    ;(e.currentTarget as Element).closest("svg")!.querySelector<SVGAElement>(`[data-at="${byID.get(to)!.position}"]`)?.focus()
  }
  const labelled = step >= 72
  return useMemo(
    () => (
      <g class={lit} transform={`translate(${x} 0)`}>
        <text class="place" y={20} aria-hidden="true">
          {n.position}
        </text>
        {labelled && (
          <text class="title" y={36} aria-hidden="true">
            {cut(plain(n.title || n.id), Math.floor(step / 7))}
          </text>
        )}
        <a
          href={`?open=${encodeURIComponent(n.id)}`}
          data-at={n.position}
          class={`node ${n.state}`}
          tabindex={first}
          aria-label={says}
          onFocus={() => (focused.value = n.id)}
          onMouseEnter={() => (focused.value = n.id)}
          onMouseLeave={() => (focused.value = "")}
          onKeyDown={move}
          onClick={(e) => {
            e.preventDefault()
            choose({ open: n.id, log: "", in: "", line: "" })
          }}
        >
          <rect class="hit" x={-step / 2} y={-tallest - 8} width={step} height={tallest + (labelled ? 48 : 32)} />
          {(n.futures ?? []).map((f, j) => (
            <Future key={j} of={f} y={-16 - j * cell} widest={Math.min(48, step - 4)} />
          ))}
          <circle r={5} />
          {n.held && <line class="hold" x1={-8} x2={8} y1={0} y2={0} />}
        </a>
      </g>
    ),
    [n, x, step, says],
  )
}

const cut = (text: string, most: number) => ([...text].length > most ? [...text].slice(0, Math.max(1, most - 1)).join("") + "…" : text)

// Future is one build: as wide as it is likely to be needed, filled as far as it is proven.
function Future({ of, y, widest }: { of: GraphFuture; y: number; widest: number }) {
  const width = Math.max(4, of.needed * widest)
  const share = of.state === "passed" || of.state === "failed" ? 1 : of.steps_total > 0 ? of.steps_done / of.steps_total : 0
  const dead = of.dead === true
  return (
    <g class={`future ${shown(of)}${dead ? " dead" : ""}`}>
      <rect class="frame" x={-width / 2} y={y} width={width} height={cell - 2} />
      {shown(of) === "running" && <rect x={-width / 2} y={y} width={width} height={cell - 2} fill="url(#running)" />}
      {share > 0 && <rect class="share" x={-width / 2} y={y} width={width * share} height={cell - 2} />}
      {dead && <line class="struck" x1={-width / 2 - 2} x2={width / 2 + 2} y1={y + cell / 2 - 1} y2={y + cell / 2 - 1} />}
    </g>
  )
}

function Legend() {
  const kinds: [string, string][] = [
    ["passed", "green"],
    ["failed", "red"],
    ["running", "running"],
    ["open", "no step of it runs"],
  ]
  return (
    <ul class="legend" aria-label="What the marks mean">
      {kinds.map(([state, name]) => (
        <li key={name}>
          <svg width={24} height={8} aria-hidden="true">
            <g class={`future ${state}`}>
              <rect class="frame" x={1} y={1} width={22} height={6} />
              {state === "running" ? <rect x={1} y={1} width={22} height={6} fill="url(#running)" /> : state === "open" ? null : <rect class="share" x={1} y={1} width={22} height={6} />}
            </g>
          </svg>
          {name}
        </li>
      ))}
      <li>A cell is a build of a possible future: as wide as it is likely to be needed, filled as far as its steps are done, and struck out where it cannot come about any more. An arc is a conflict. A dash on a dot: the change is held.</li>
    </ul>
  )
}

const short = (n: Node) => `#${n.position} ${plain(n.title || n.id)}`

function list(names: string[], most = 4): string {
  const shown = names.slice(0, most)
  if (names.length > most) return `${shown.join(", ")} and ${names.length - most} more`
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}` : (shown[0] ?? "")
}

function edgeText(ahead: Node, n: Node, e: { targets?: string[]; merge_conflict?: boolean; required?: boolean }): string {
  if (e.required) return `${short(n)} requires ${short(ahead)}`
  if (e.merge_conflict) return `${short(n)} does not merge with ${short(ahead)}`
  return `${short(n)} meets ${short(ahead)} in ${list((e.targets ?? []).map(plain))}`
}

// said is what the graph shows of a change, in words.
function said(n: Node, all: Map<string, Node>, behind: Map<string, string[]>): string {
  const name = (id: string) => (all.has(id) ? `#${all.get(id)!.position}` : plain(id))
  const out = [`${short(n)} is ${n.state === "testing" ? shown({ state: n.state, steps_running: n.futures?.some((f) => f.steps_running) ? 1 : 0 }) : n.state}${n.held ? " and held" : ""}.`]
  const ahead = n.ahead ?? []
  if (ahead.length > 0) {
    const targets = [...new Set(ahead.flatMap((e) => e.targets ?? []))].map(plain)
    const more = (n.ahead_total ?? 0) - ahead.length
    out.push(`It meets ${list(ahead.map((e) => name(e.change)).reverse())}${more > 0 ? ` and ${more} further ahead` : ""}${targets.length > 0 ? ` in ${list(targets, 3)}` : ""}.`)
  } else out.push("It meets nothing ahead.")
  for (const f of n.futures ?? []) {
    const when = f.assumed.length === 0 ? "on the mainline as it stands" : `if ${list(f.assumed.map(name), 3)} land${f.assumed.length === 1 ? "s" : ""}`
    const how = f.state === "passed" ? "green" : f.state === "failed" ? "red" : f.state === "running" ? `${shown(f)}, ${f.steps_done} of ${plural(f.steps_total, "step")} done,` : f.state
    out.push(`${how[0]!.toUpperCase()}${how.slice(1)} ${when}${f.dead ? ", which cannot come about any more" : ""}.`)
  }
  const waiting = behind.get(n.id) ?? []
  if (waiting.length > 0) out.push(`${list(waiting.map(name))} ${waiting.length === 1 ? "meets" : "meet"} it from behind.`)
  return out.join(" ")
}

const columns = 80
const rows = 12

// Densities are the lanes of a queue that is too long to draw each change of: how many of each part of the queue are in which state.
function Densities({ nodes }: { nodes: Node[] }) {
  const lanes = useMemo(() => lanesOf(nodes), [nodes])
  const pointed = useSignal<{ from: number; to: number; row?: number } | undefined>(undefined)
  const width = Math.ceil(nodes.length / columns)
  const shown = lanes.length > rows ? [...lanes.slice(0, rows - 1), { nodes: lanes.slice(rows - 1).flatMap((l) => l.nodes), alone: false }] : lanes
  const nameOf = (i: number) => (shown[i]!.alone ? `${shown[i]!.nodes.length} meet no other` : i === rows - 1 && lanes.length > rows ? `${shown[i]!.nodes.length} in other groups` : `${shown[i]!.nodes.length} meet`)
  const at = pointed.value
  const leave = () => (pointed.value = undefined)
  const buckets = useMemo(() => shown.map((lane) => bucketsOf(lane.nodes, width)), [lanes])
  return (
    <div class="graph">
      <p class="soft">
        {plural(nodes.length, "change")}. A row is a group of changes that meet; a column is {plural(width, "place")} of the queue. Choose places to see their changes.
      </p>
      <table class="densities">
        <caption class="unseen">How many changes of each group stand where in the queue</caption>
        <tbody>
          {shown.map((_, i) => (
            <tr key={i}>
              <th scope="row">{nameOf(i)}</th>
              <td>
                <svg viewBox={`0 0 ${columns * 10} 32`} preserveAspectRatio="none" aria-hidden="true" onMouseLeave={leave}>
                  {buckets[i]!.map((b, at) =>
                    b.count === 0 ? null : (
                      <g
                        key={at}
                        onMouseEnter={() => (pointed.value = { from: at * width + 1, to: Math.min(nodes.length, (at + 1) * width), row: i })}
                        onClick={() => choose({ from: String(Math.floor((at * width) / part) * part + 1) })}
                      >
                        {b.parts.map((p) => (
                          <rect key={p.state} class={p.state} x={at * 10} width={9} y={32 - (32 * p.to) / width} height={(32 * (p.to - p.from)) / width} />
                        ))}
                      </g>
                    ),
                  )}
                </svg>
              </td>
            </tr>
          ))}
          <tr>
            <th scope="row">places</th>
            <td>
              <div class="parts">
                {Array.from({ length: Math.ceil(nodes.length / part) }, (_, i) => {
                  const [from, to] = [i * part + 1, Math.min(nodes.length, (i + 1) * part)]
                  const point = () => (pointed.value = { from, to })
                  return (
                    <button key={i} type="button" onFocus={point} onMouseEnter={point} onBlur={leave} onMouseLeave={leave} onClick={() => choose({ from: String(from) })}>
                      {from}–{to}
                    </button>
                  )
                })}
              </div>
            </td>
          </tr>
        </tbody>
      </table>
      <p class="said" aria-live="polite">
        {at ? saidOf(at, shown, at.row === undefined ? "" : nameOf(at.row)) : <span class="soft">Point at places, or go to them with the keys: how many changes of which state stand there is said here.</span>}
      </p>
    </div>
  )
}

// saidOf is what is drawn of some places, in words: of one row by its name, or of all.
function saidOf({ from, to, row }: { from: number; to: number; row?: number }, lanes: Lane[], name: string): string {
  const there = (l: Lane) => l.nodes.filter((n) => n.position >= from && n.position <= to)
  const nodes = row === undefined ? lanes.flatMap(there) : there(lanes[row]!)
  const states = ["passed", "testing", "waiting"].map((state) => [nodes.filter((n) => n.state === state).length, state] as const).filter(([count]) => count > 0)
  const where = `Places ${from} to ${to}`
  if (row !== undefined) return `${where}, of the ${name}: ${states.map((s) => s.join(" ")).join(", ")}.`
  const meet = lanes.filter((l) => !l.alone && there(l).length > 0).length
  return `${where}: ${states.map((s) => s.join(" ")).join(", ")}, in ${plural(meet, "row")} of changes that meet.`
}

function bucketsOf(nodes: Node[], width: number) {
  const out = Array.from({ length: columns }, () => ({ count: 0, states: new Map<string, number>(), parts: [] as { state: string; from: number; to: number }[] }))
  for (const n of nodes) {
    const b = out[Math.min(columns - 1, Math.floor((n.position - 1) / width))]!
    b.count++
    b.states.set(n.state, (b.states.get(n.state) ?? 0) + 1)
  }
  for (const b of out) {
    let at = 0
    for (const state of ["passed", "testing", "waiting"]) {
      const count = b.states.get(state) ?? 0
      if (count > 0) b.parts.push({ state, from: at, to: (at += count) })
    }
  }
  return out
}
