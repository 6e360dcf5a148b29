// A chart by uPlot, with the same as a table. Colours and letters are those of the page, and follow its theme.

import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"
import { Fold } from "./frame"

export interface Line {
  name: string
  // colour is a variable of the style sheet.
  colour: string
  values: (number | null)[]
  dash?: number[]
}

export interface Chart {
  title: string
  children?: ComponentChildren
  // xs are where the values are: times in milliseconds, or numbers.
  xs: number[]
  x: (value: number) => string
  y: (value: number) => string
  lines: Line[]
  // incrs are the steps that the values' axis can have, the smallest first; uPlot's without them.
  incrs?: number[]
  // stacked has the lines as bars, one upon the other; they are in the order from below.
  stacked?: boolean
  // square has both axes from 0 to 1, with the diagonal on which what is predicted comes true.
  square?: boolean
  // columns of the table beside those of the lines: name and values.
  more?: [string, string[]][]
  first: string
}

const height = 200

// resolve is a colour of the style sheet in the theme that is shown.
function resolve(of: HTMLElement, name: string): string {
  of.style.color = `var(${name})`
  const colour = getComputedStyle(of).color
  of.style.color = ""
  return colour
}

export function Plot(c: Chart) {
  const box = useRef<HTMLDivElement>(null)
  const read = useSignal("")
  useEffect(() => {
    const at = box.current!
    let plot: uPlot | undefined
    const draw = () => {
      plot?.destroy()
      plot = new uPlot(optionsOf(c, at, (text) => (read.value = text)), dataOf(c), at)
    }
    draw()
    const themes = matchMedia("(prefers-color-scheme: dark)")
    themes.addEventListener("change", draw)
    const seen = new ResizeObserver(() => plot?.setSize({ width: at.clientWidth, height }))
    seen.observe(at)
    return () => {
      themes.removeEventListener("change", draw)
      seen.disconnect()
      plot?.destroy()
    }
  }, [c.xs, c.lines])
  const newest = c.xs.length - 1
  return (
    <section class="plot">
      <h2>{c.title}</h2>
      {c.children}
      <ul class="legend" aria-label="What the colours mean">
        {c.lines.map((l) => (
          <li key={l.name}>
            <svg width={20} height={10} aria-hidden="true">
              {c.stacked ? <rect class="swatch" style={{ fill: `var(${l.colour})` }} x={0} y={0} width={20} height={10} /> : <line class="swatch" style={{ stroke: `var(${l.colour})` }} x1={0} x2={20} y1={5} y2={5} stroke-dasharray={l.dash?.join(" ")} />}
            </svg>
            {l.name}
          </li>
        ))}
      </ul>
      <div
        class="canvas chart"
        ref={box}
        role="img"
        aria-label={`${c.title}: ${c.lines.map((l) => `${l.name} ${say(c, l.values[newest])}`).join(", ")} at ${c.x(c.xs[newest]!)}. The table has all.`}
      />
      <p class="read soft" aria-hidden="true">
        {read.value || "\u00a0"}
      </p>
      <Fold name={`table ${c.title}`} summary="As a table">
        <div class="wide" tabIndex={0} role="group" aria-label={c.title}>
          <table class="facts">
            <thead>
              <tr>
                {[c.first, ...c.lines.map((l) => l.name), ...(c.more ?? []).map(([name]) => name)].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {c.xs.map((x, i) => (
                <tr key={x}>
                  <th scope="row">{c.x(x)}</th>
                  {c.lines.map((l) => (
                    <td key={l.name}>{say(c, l.values[i])}</td>
                  ))}
                  {(c.more ?? []).map(([name, values]) => (
                    <td key={name}>{values[i]}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Fold>
    </section>
  )
}

const say = (c: Chart, value: number | null | undefined) => (value === null || value === undefined ? "none" : c.y(value))

// dataOf are the columns that uPlot draws. Bars that are stacked are drawn from the highest sum down, so that each covers what is above it.
function dataOf(c: Chart): uPlot.AlignedData {
  const xs = c.xs.map((x) => (c.square ? x : x / 1000))
  if (!c.stacked) return [xs, ...c.lines.map((l) => l.values), ...(c.square ? [xs] : [])] as uPlot.AlignedData
  const sums = c.lines.map((_, n) => c.xs.map((_, i) => c.lines.slice(0, n + 1).reduce((sum, l) => sum + (l.values[i] ?? 0), 0)))
  return [xs, ...sums.reverse()] as uPlot.AlignedData
}

function optionsOf(c: Chart, at: HTMLElement, tell: (text: string) => void): uPlot.Options {
  const style = getComputedStyle(at)
  const font = `12px ${style.fontFamily}`
  const soft = resolve(at, "--soft")
  const line = resolve(at, "--line")
  const ground = resolve(at, "--back")
  const week = 7 * 86_400
  const axis: uPlot.Axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 } }
  const bars = uPlot.paths.bars!({ size: [0.6, 40] })
  const drawn = c.stacked ? [...c.lines].reverse() : c.lines
  return {
    width: at.clientWidth,
    height,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: !c.stacked } },
    scales: {
      x: { time: false, range: c.square ? [0, 1] : (_, min, max) => [min - week / 2, max + week / 2] },
      y: { range: c.square ? [0, 1] : (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 32,
        ...(!c.square && { splits: (u: uPlot) => every([...u.data[0]], Math.max(1, Math.ceil((u.data[0].length * 72) / Math.max(72, u.width - 80)))) }),
        values: (_, splits) => splits.map((s) => c.x(c.square ? s : s * 1000)),
      },
      { ...axis, size: 72, ...(c.incrs && { incrs: c.incrs }), values: (_, splits) => splits.map((s) => c.y(s)) },
    ],
    series: [
      {},
      ...drawn.map((l): uPlot.Series => {
        const colour = resolve(at, l.colour)
        return c.stacked ? { label: l.name, fill: colour, stroke: ground, width: 1, paths: bars, points: { show: false } } : { label: l.name, stroke: colour, width: 2, dash: l.dash, points: { show: true, size: 7, fill: ground, stroke: colour, width: 2 } }
      }),
      ...(c.square ? [{ stroke: soft, width: 1, dash: [4, 4], points: { show: false } } as uPlot.Series] : []),
    ],
    hooks: {
      setCursor: [
        (u) => {
          const i = u.cursor.idx
          tell(i === null || i === undefined ? "" : `${c.x(c.xs[i]!)}: ${c.lines.map((l) => `${l.name} ${say(c, l.values[i])}`).join(", ")}`)
        },
      ],
    },
  }
}

const every = (list: number[], n: number) => list.filter((_, i) => (list.length - 1 - i) % n === 0)
