// The output of a step, with its colours, as it is printed.

import { useSignal, useSignalEffect } from "@preact/signals"
import type { VNode } from "preact"
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks"
import type { Failure, Step } from "./openapi"
import { choose, query } from "./router"
import { plain, plural } from "./words"

// mostBytes and mostLines bound what is read at first and shown; the rest is a download away. mostOfLine bounds a line.
const mostBytes = 512 << 10
const mostLines = 5000
const mostOfLine = 10_000

interface Piece {
  text: string
  class: string
}

interface Line {
  number: number
  pieces: Piece[]
  text: string
}

const escapes = /\u001b\[([0-9;]*)m|\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-_]|\r(?=\n)/g

// Output is what a step has printed, in lines of pieces that have one colour each, by the escape sequences in it; others are taken out.
class Output {
  // lines are those that are whole, the last mostLines of count.
  lines: Line[] = []
  count = 0
  // rest begins the line that is not whole yet.
  private rest = ""
  private colour = ""
  private bold = false

  add(text: string) {
    const parts = (this.rest + text).split("\n")
    this.rest = shortened(parts.pop()!)
    this.count += Math.max(0, parts.length - mostLines)
    for (const part of parts.slice(-mostLines)) this.lines.push(this.line(part, ++this.count))
    this.lines = this.lines.slice(-mostLines)
  }

  // all is the lines with the one that is not whole. It is another list once there is more.
  all(): Line[] {
    if (!this.rest) return this.lines
    const { colour, bold } = this
    const last = this.line(this.rest, this.count + 1)
    Object.assign(this, { colour, bold })
    return [...this.lines, last]
  }

  private line(text: string, number: number): Line {
    const pieces: Piece[] = []
    const put = (part: string) => {
      // A carriage return writes over what stands in the line.
      if (part.includes("\r")) pieces.length = 0
      const clean = plain(part.slice(part.lastIndexOf("\r") + 1).replaceAll("\t", "    "))
      if (clean) pieces.push({ text: clean, class: `${this.colour}${this.bold ? " bold" : ""}`.trim() })
    }
    let at = 0
    text = shortened(text.replace(/\r$/, ""))
    for (const m of text.matchAll(escapes)) {
      put(text.slice(at, m.index))
      at = m.index + m[0].length
      if (m[1] !== undefined) this.paint(m[1])
    }
    put(text.slice(at))
    return { number, pieces, text: pieces.map((p) => p.text).join("") }
  }

  private paint(codes: string) {
    for (const code of (codes || "0").split(";").map(Number)) {
      if (code === 0) [this.colour, this.bold] = ["", false]
      else if (code === 1) this.bold = true
      else if (code === 22) this.bold = false
      else if (code === 39) this.colour = ""
      else if (code >= 30 && code <= 37) this.colour = `c${code - 30}`
      else if (code >= 90 && code <= 97) this.colour = `c${code - 90}`
    }
  }
}

// shortened returns a line of a bounded length, without what a carriage return has written over.
function shortened(line: string): string {
  if (line.length <= mostOfLine) return line
  const left = line.slice(Math.max(0, line.lastIndexOf("\r", line.length - 2)))
  return left.length <= mostOfLine ? left : `${left.slice(0, mostOfLine)} …`
}

export const logName = (s: Step) => `${s.hash ?? ""}.${s.attempt ?? 0}`

// again is how long after a log that broke off it is asked for again.
const again = 2000

// Log shows the output of a run of a step of a change, or where that is "" of the mainline. While that runs, what it prints is added.
export function Log({ queue, change, revision, step }: { queue: string; change: string; revision?: number; step: Step }) {
  const output = useRef(new Output())
  // shown rises with the output; 0 while nothing is known.
  const shown = useSignal(0)
  const wrong = useSignal("")
  const whole = useSignal(true)
  const search = useSignal("")
  const round = useSignal(0)
  const running = useRef(false)
  running.current = step.state === "running"
  const parameters = new URLSearchParams({ target: step.target })
  if (step.hash) parameters.set("hash", step.hash)
  if (step.attempt) parameters.set("attempt", String(step.attempt))
  if (revision) parameters.set("revision", String(revision))
  const address = `/v1/queues/${encodeURIComponent(queue)}/${change && `changes/${encodeURIComponent(change)}/`}logs?${parameters}`
  useEffect(() => {
    const given = new AbortController()
    let timer = 0
    let drawn = 0
    const draw = () => (drawn ||= requestAnimationFrame(() => ((drawn = 0), shown.value++)))
    const later = () => (timer = setTimeout(() => round.value++, again))
    const read = async () => {
      const answer = await fetch(`${address}&limit=${mostBytes}&follow=true`, { signal: given.signal })
      if (!answer.ok) {
        const failure = (await answer.json().catch(() => undefined)) as Failure | undefined
        wrong.value = failure?.error ? `${failure.error.message} ${failure.error.advice}` : `The gateway answers with ${answer.status}.`
        if (running.current) later() // its lease is perhaps not known there yet
        return
      }
      const fresh = new Output()
      output.current = fresh
      const first = Number(answer.headers.get("X-Landfall-Line") ?? 0)
      if (first > 0) fresh.count = first - 1
      whole.value = first > 0 || answer.headers.get("X-Landfall-Complete") !== "false"
      wrong.value = ""
      draw()
      const reader = answer.body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
      for (;;) {
        const { value, done } = await reader.read()
        if (done) break
        fresh.add(value)
        draw()
      }
      // A stream ends with the step, or after a while; and where the log is elsewhere, the gateway knows more afterwards.
      if (running.current || !answer.headers.has("X-Landfall-Complete")) later()
    }
    read().catch((e: Error) => {
      if (given.signal.aborted) return
      wrong.value = `The output cannot be read: ${e.message}. ${running.current ? "It is tried again." : "Try again."}`
      if (running.current) later()
    })
    return () => {
      clearTimeout(timer)
      cancelAnimationFrame(drawn)
      given.abort()
    }
  }, [address, round.value])
  if (shown.value === 0) return wrong.value ? <p class="wrong">{plain(wrong.value)}</p> : <p class="soft">Reading the output…</p>
  return (
    <div class="log">
      <div class="line">
        <input type="search" placeholder="search the output" aria-label={`Search the output of ${step.target}`} value={search.value} onInput={(e) => (search.value = e.currentTarget.value)} />
        {running.current && (
          <span class="state running" role="status">
            ◐ it runs: what it prints appears here
          </span>
        )}
        <span class="space" />
        {!whole.value && <span class="soft">Only the end is kept; its lines are counted from there.</span>}
        <a href={address} download={`${step.target.replace(/[^a-zA-Z0-9._-]+/g, "_")}.log`}>
          Download
        </a>
      </div>
      {wrong.value && <p class="wrong">{plain(wrong.value)}</p>}
      <Lines lines={output.current.all()} running={running.current} search={search.value} decisive={step.lines ?? []} />
    </div>
  )
}

function Lines({ lines: all, running, search, decisive }: { lines: Line[]; running: boolean; search: string; decisive: string[] }) {
  const ref = useRef<HTMLOListElement>(null)
  // follows is whether the reader is at the end, as the list was before what is new, and stays there.
  const list = ref.current
  const follows = running && (!list || list.scrollTop + list.clientHeight >= list.scrollHeight - 40)
  const chosen = Number(query.value.get("line") ?? 0)
  useSignalEffect(() => {
    const at = query.value.get("line")
    if (at) ref.current?.querySelector(`[data-line="${Number(at)}"]`)?.scrollIntoView({ block: "center" })
  })
  useLayoutEffect(() => {
    if (follows && ref.current) ref.current.scrollTop = ref.current.scrollHeight
  })
  const marks = useMemo(() => decisive.map((d) => plain(d).trim()).filter((d) => d.length > 2), [decisive.join("\n")])
  // A line that is as before is not looked at again.
  const made = useMemo(() => new WeakMap<Line, VNode>(), [chosen, marks])
  if (all.length === 0) return <p class="soft">{running ? "It has printed nothing yet." : "It printed nothing."}</p>
  const wanted = search.trim().toLowerCase()
  const found = wanted ? all.filter((l) => l.text.toLowerCase().includes(wanted)) : all
  const line = (l: Line) => {
    let node = made.get(l)
    if (!node) made.set(l, (node = <Printed key={l.number} of={l} class={`${marks.some((m) => l.text.includes(m)) ? "decisive" : ""}${l.number === chosen ? " chosen" : ""}`} />))
    return node
  }
  return (
    <>
      {all[0]!.number > 1 && <p class="soft">The last {plural(all.length, "line")} of {all[all.length - 1]!.number.toLocaleString()} are shown.</p>}
      {wanted && <p role="status" class="soft">{plural(found.length, "line")} found</p>}
      <ol ref={ref} class="lines" tabIndex={0} aria-label="Output">
        {found.map(line)}
      </ol>
    </>
  )
}

function Printed({ of, class: name }: { of: Line; class: string }) {
  return (
    <li data-line={of.number} class={name}>
      <a
        href={`?line=${of.number}`}
        aria-label={`Line ${of.number}`}
        onClick={(e) => {
          e.preventDefault()
          choose({ line: String(of.number) })
        }}
      >
        {of.number}
      </a>
      <span dir="ltr">
        {of.pieces.map((p, i) => (
          <span key={i} class={p.class}>
            {p.text}
          </span>
        ))}
      </span>
    </li>
  )
}
