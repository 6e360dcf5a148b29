// The stream of /v1/watch: one connection for all that is watched, resumed where it broke. It runs in a SharedWorker for all pages
// of a browser, or in the page where there is none.

import type { Failure, Part } from "./openapi"

// Interest has the names of what a page watches besides the overview of each queue: the parameter of /v1/watch, a space and its value.
export type Interest = string[]

// Message is what a page is told.
export type Message =
  | { type: "state" | "patch"; part: Part }
  // live is false while nothing is known of what has happened since a time, in milliseconds. refused: the gateway does not know who
  // asks, and nothing is shown until somebody signs in.
  | { type: "status"; live: boolean; since: number; why?: string; refused?: boolean }

export type Listener = (messages: Message[]) => void

// silence is how long a live stream says nothing at most: a heartbeat comes each 15 s.
const silence = 25_000
const pauses = [300, 1000, 2000, 5000, 10_000]

// merge applies a JSON merge patch (RFC 7396), and leaves the target as it is.
export function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch
  // Without a prototype: a change may be named __proto__.
  const out: Record<string, unknown> = Object.assign(Object.create(null), typeof target === "object" && !Array.isArray(target) ? target : undefined)
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete out[name]
    else out[name] = merge(out[name], value)
  }
  return out
}

const keyOf = (p: Part) => `${p.kind} ${p.queue} ${p.change ?? ""}`

export class Feed {
  private readers = new Map<Listener, Interest>()
  private parts = new Map<string, Part>()
  private wanted = "none"
  private lastID = ""
  private connection?: AbortController
  private heard = 0
  private live = false
  private why?: string
  private refused = false
  private failures = 0

  constructor() {
    setInterval(() => {
      if (this.live && Date.now() - this.heard > silence) this.connect()
    }, 5000)
    addEventListener("online", () => this.connect())
  }

  // want sets what a reader watches, and tells it what is known of that.
  want(reader: Listener, interest: Interest) {
    const known = !this.readers.has(reader)
    const before = this.readers.get(reader)
    this.readers.set(reader, interest)
    const messages: Message[] = []
    for (const part of this.parts.values()) {
      if (wants(interest, part) && (known || !before || !wants(before, part))) messages.push({ type: "state", part })
    }
    messages.push(this.status())
    reader(messages)
    this.update()
  }

  drop(reader: Listener) {
    this.readers.delete(reader)
    this.update()
  }

  // update connects again if something else is watched than before.
  private update() {
    const query = new URLSearchParams()
    const named = new Set<string>()
    for (const interest of this.readers.values()) for (const name of interest) named.add(name)
    for (const name of [...named].sort().slice(0, 20)) {
      const at = name.indexOf(" ")
      query.append(name.slice(0, at), name.slice(at + 1))
    }
    const wanted = this.readers.size === 0 ? "none" : query.toString()
    if (wanted === this.wanted && !this.refused) return
    this.wanted = wanted
    this.connect()
  }

  // again forgets everything and connects again: somebody has signed out.
  again() {
    this.parts.clear()
    this.lastID = ""
    this.connect()
  }

  private status(): Message {
    return { type: "status", live: this.live, since: this.heard, why: this.why, refused: this.refused }
  }

  private setLive(live: boolean, why?: string, refused = false) {
    if (this.live === live && this.why === why && this.refused === refused) return
    this.live = live
    this.why = why
    this.refused = refused
    for (const reader of this.readers.keys()) reader([this.status()])
  }

  private async connect() {
    this.connection?.abort()
    if (this.wanted === "none") return
    const connection = (this.connection = new AbortController())
    while (!connection.signal.aborted) {
      try {
        const headers: Record<string, string> = this.lastID ? { "Last-Event-ID": this.lastID } : {}
        const answer = await fetch("/v1/watch?" + this.wanted, { headers, signal: connection.signal })
        if (!answer.ok) {
          const failure = (await answer.json().catch(() => undefined)) as Failure | undefined
          const why = failure?.error ? `${failure.error.message} ${failure.error.advice}` : `The gateway answers with ${answer.status}.`
          if (answer.status !== 401) throw new Error(why)
          // It is asked again when a page says what it watches: whoever signs in loads one.
          this.parts.clear()
          this.lastID = ""
          this.setLive(false, why, true)
          return
        }
        const began = Date.now()
        await this.read(answer.body!, connection.signal)
        if (Date.now() - began > 1000 && !connection.signal.aborted) continue // streams end now and then, to be asked for again
        throw new Error("The gateway ended the connection.")
      } catch (error) {
        if (connection.signal.aborted) return
        const lost = error instanceof TypeError
        this.setLive(false, lost ? "The gateway does not answer. Does landfall run?" : (error as Error).message)
        await new Promise((done) => setTimeout(done, pauses[Math.min(this.failures++, pauses.length - 1)]))
      }
    }
  }

  private async read(body: ReadableStream<Uint8Array>, aborted: AbortSignal) {
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
    let rest = ""
    for (;;) {
      const { value, done } = await reader.read()
      if (done || aborted.aborted) return
      this.heard = Date.now()
      this.failures = 0
      this.setLive(true)
      const blocks = (rest + value).split("\n\n")
      rest = blocks.pop()!
      const messages: Message[] = []
      for (const block of blocks) this.take(block, messages)
      for (const [listener, interest] of this.readers) {
        const wanted = messages.filter((m) => m.type === "status" || wants(interest, m.part))
        if (wanted.length > 0) listener(wanted)
      }
    }
  }

  // reach takes how far the stream is. A part that it is not of any more is forgotten then, not before: until then the id says that
  // it is known, and a stream that goes on from there sends patches of it alone.
  private reach(id: string) {
    this.lastID = id
    const interests = [...this.readers.values()]
    for (const [key, part] of this.parts) {
      if (part.kind !== "queue" && !interests.some((i) => wants(i, part))) this.parts.delete(key)
    }
  }

  private take(block: string, messages: Message[]) {
    let event = ""
    let data = ""
    for (const line of block.split("\n")) {
      if (line.startsWith("event: ")) event = line.slice(7)
      else if (line.startsWith("data: ")) data = line.slice(6)
      else if (line.startsWith("id: ")) this.reach(line.slice(4))
    }
    if (event !== "state" && event !== "patch") return
    const part = JSON.parse(data) as Part
    const key = keyOf(part)
    const whole = event === "state" ? part : { ...part, value: merge(this.parts.get(key)?.value, part.value) }
    this.parts.set(key, whole)
    messages.push({ type: event, part })
  }
}

// nameOf is what a part is asked for by, "" for what comes unasked.
export function nameOf({ kind, queue, change }: Part): string {
  if (kind === "queue") return ""
  if (kind === "change") return `change ${queue}/${change}`
  return queue ? `${kind} ${queue}` : `list ${kind}`
}

function wants(interest: Interest, part: Part): boolean {
  const name = nameOf(part)
  return name === "" || interest.includes(name)
}
