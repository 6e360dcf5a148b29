// The output of a step, with its colours.

import { useSignal, useSignalEffect } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import type { Failure, Step } from "./openapi"
import { choose, query } from "./router"
import { plain, plural } from "./words"

// mostBytes and mostLines bound what is shown; the rest is a download away.
const mostBytes = 512 << 10
const mostLines = 5000

interface Piece {
  text: string
  class: string
}

const escapes = /\u001b\[([0-9;]*)m|\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-_]|\r(?=\n)/g

// lines cuts text into lines of pieces that have one colour each, by the escape sequences in it; others are taken out.
export function coloured(text: string): Piece[][] {
  const out: Piece[][] = [[]]
  let colour = ""
  let bold = false
  const put = (piece: string) => {
    piece.split("\n").forEach((part, i) => {
      if (i > 0) out.push([])
      // A carriage return writes over what stands in the line.
      const last = part.slice(part.lastIndexOf("\r") + 1)
      const clean = plain(last.replaceAll("\t", "    "))
      if (clean) out[out.length - 1]!.push({ text: clean, class: `${colour}${bold ? " bold" : ""}`.trim() })
    })
  }
  let at = 0
  for (const m of text.matchAll(escapes)) {
    put(text.slice(at, m.index))
    at = m.index + m[0].length
    if (m[1] === undefined) continue
    for (const code of (m[1] || "0").split(";").map(Number)) {
      if (code === 0) [colour, bold] = ["", false]
      else if (code === 1) bold = true
      else if (code === 22) bold = false
      else if (code === 39) colour = ""
      else if (code >= 30 && code <= 37) colour = `c${code - 30}`
      else if (code >= 90 && code <= 97) colour = `c${code - 90}`
    }
  }
  put(text.slice(at))
  if (out.length > 1 && out[out.length - 1]!.length === 0) out.pop()
  return out
}

export const logName = (s: Step) => `${s.hash ?? ""}.${s.attempt ?? 0}`

export function Log({ queue, change, revision, step }: { queue: string; change: string; revision?: number; step: Step }) {
  const text = useSignal<string | undefined>(undefined)
  const wrong = useSignal("")
  const whole = useSignal(true)
  const search = useSignal("")
  const parameters = new URLSearchParams({ target: step.target })
  if (step.hash) parameters.set("hash", step.hash)
  if (step.attempt) parameters.set("attempt", String(step.attempt))
  if (revision) parameters.set("revision", String(revision))
  const address = `/v1/queues/${encodeURIComponent(queue)}/changes/${encodeURIComponent(change)}/logs?${parameters}`
  useEffect(() => {
    const given = new AbortController()
    fetch(`${address}&limit=${mostBytes}`, { signal: given.signal }).then(
      async (answer) => {
        if (!answer.ok) {
          const failure = (await answer.json().catch(() => undefined)) as Failure | undefined
          wrong.value = failure?.error ? `${failure.error.message} ${failure.error.advice}` : `The gateway answers with ${answer.status}.`
          return
        }
        whole.value = answer.headers.get("X-Landfall-Complete") !== "false"
        text.value = await answer.text()
      },
      (e) => given.signal.aborted || (wrong.value = `The output cannot be read: ${(e as Error).message}. Try again.`),
    )
    return () => given.abort()
  }, [address])
  if (wrong.value) return <p class="wrong">{plain(wrong.value)}</p>
  if (text.value === undefined) return <p class="soft">Reading the output…</p>
  return (
    <div class="log">
      <div class="line">
        <input type="search" placeholder="search the output" aria-label={`Search the output of ${step.target}`} value={search.value} onInput={(e) => (search.value = e.currentTarget.value)} />
        <span class="space" />
        {!whole.value && <span class="soft">Only the end is shown.</span>}
        <a href={address} download={`${step.target.replace(/[^a-zA-Z0-9._-]+/g, "_")}.log`}>
          Download
        </a>
      </div>
      <Lines text={text.value} search={search.value} decisive={step.lines ?? []} />
    </div>
  )
}

function Lines({ text, search, decisive }: { text: string; search: string; decisive: string[] }) {
  const ref = useRef<HTMLOListElement>(null)
  const chosen = Number(query.value.get("line") ?? 0)
  useSignalEffect(() => {
    const at = query.value.get("line")
    if (at) ref.current?.querySelector(`[data-line="${Number(at)}"]`)?.scrollIntoView({ block: "center" })
  })
  const all = coloured(text)
  const wanted = search.trim().toLowerCase()
  const from = Math.max(0, all.length - mostLines)
  const shown = all.map((pieces, i) => ({ pieces, number: i + 1, text: pieces.map((p) => p.text).join("") })).slice(from)
  const found = wanted ? shown.filter((l) => l.text.toLowerCase().includes(wanted)) : shown
  const marks = decisive.map((d) => plain(d).trim()).filter((d) => d.length > 2)
  if (text === "") return <p class="soft">It printed nothing.</p>
  return (
    <>
      {from > 0 && <p class="soft">The last {plural(mostLines, "line")} of {all.length.toLocaleString()} are shown.</p>}
      {wanted && <p role="status" class="soft">{plural(found.length, "line")} found</p>}
      <ol ref={ref} class="lines" tabIndex={0} aria-label="Output">
        {found.map((l) => (
          <li key={l.number} data-line={l.number} class={`${marks.some((m) => l.text.includes(m)) ? "decisive" : ""}${l.number === chosen ? " chosen" : ""}`}>
            <a
              href={`?line=${l.number}`}
              aria-label={`Line ${l.number}`}
              onClick={(e) => {
                e.preventDefault()
                choose({ line: String(l.number) })
              }}
            >
              {l.number}
            </a>
            <span dir="ltr">
              {l.pieces.map((p, i) => (
                <span key={i} class={p.class}>
                  {p.text}
                </span>
              ))}
            </span>
          </li>
        ))}
      </ol>
    </>
  )
}
