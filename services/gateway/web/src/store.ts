// What the page knows: the parts of the stream, as signals.

import { batch, effect, signal, type Signal } from "@preact/signals"
import { Feed, merge, nameOf, type Interest, type Message } from "./feed"
import { askWho } from "./me"
import type { Change, ChangeList, Failure, Graph, Overview, QueueList, Summary } from "./openapi"
import { at, route } from "./router"

// queues has the overview of each queue; undefined until the stream has begun.
export const queues = signal<Record<string, Overview> | undefined>(undefined)

// named is a record that has what was put in it alone: an address may name anything, also what every object has.
const named = <T>(of: Record<string, T>): Record<string, T> => Object.assign(Object.create(null), of)

// status is whether the stream is live, and when something was last heard, 0 for never. It is refused to whom the gateway does not know.
export const status = signal<{ live: boolean; since: number; why?: string; refused?: boolean }>({ live: false, since: 0 })

// Table is the changes of a queue.
export class Table {
  rows = new Map<string, Signal<Summary>>()
  // order has the ids of pending changes in queue order, then of those that left, newest first.
  order = signal<string[] | undefined>(undefined)
}

export const final = (state: string) => state === "landed" || state === "dropped" || state === "rejected" || state === "ejected" || state === "cancelled"

const tables = new Map<string, Table>()
const graphs = new Map<string, Signal<Graph | undefined>>()
const parts = new Map<string, Signal<unknown>>()
const details = new Map<string, Signal<Change | null | undefined>>()

export function tableOf(queue: string): Table {
  let table = tables.get(queue)
  if (!table) tables.set(queue, (table = new Table()))
  return table
}

// detailOf is a change with everything about it: undefined until it is known, null if the queue has no such change.
export function detailOf(queue: string, change: string): Signal<Change | null | undefined> {
  const key = `${queue}/${change}`
  let detail = details.get(key)
  if (!detail) details.set(key, (detail = signal(undefined)))
  return detail
}

// graphOf is what is pending in a queue and how it depends on each other, undefined until it is known.
export function graphOf(queue: string): Signal<Graph | undefined> {
  let graph = graphs.get(queue)
  if (!graph) graphs.set(queue, (graph = signal(undefined)))
  return graph
}

// partOf is another part of the stream by its name: undefined until it is known. Of a list that is read from its route it is a number,
// which grows when the list changes; flakes and quarantines are whole.
export function partOf<T>(name: string): Signal<T | undefined> {
  let part = parts.get(name)
  if (!part) parts.set(name, (part = signal(undefined)))
  return part as Signal<T | undefined>
}

function take(messages: Message[]) {
  batch(() => {
    const touched = new Set<Table>()
    for (const m of messages) {
      if (m.type === "status") {
        // Whether somebody is known may have changed with it.
        if ((m.live && !status.value.live) || (m.refused && !status.value.refused)) void askWho()
        status.value = { live: m.live, since: m.since, why: m.why, refused: m.refused }
        if (m.refused) forget()
        continue
      }
      if (at.value) continue // the past is shown
      const { kind, queue, change, value } = m.part
      if (kind === "queue") {
        queues.value = named({ ...queues.value, [queue]: (m.type === "state" ? value : merge(queues.value?.[queue], value)) as Overview })
      } else if (kind === "changes") {
        const table = tableOf(queue)
        if (updateTable(table, value as Record<string, Summary | null>, m.type === "state")) touched.add(table)
      } else if (kind === "graph") {
        const graph = graphOf(queue)
        graph.value = (m.type === "state" ? value : merge(graph.value, value)) as Graph
      } else if (kind === "change") {
        const detail = detailOf(queue, change!)
        detail.value = (m.type === "state" ? value : merge(detail.value, value)) as Change | null
      } else {
        const part = partOf(nameOf(m.part))
        part.value = m.type === "state" ? value : merge(part.value, value)
      }
    }
    for (const table of touched) table.order.value = sorted(table)
  })
}

// forget forgets everything that was shown to somebody who is not known any more.
function forget() {
  queues.value = undefined
  for (const table of tables.values()) {
    table.rows.clear()
    table.order.value = undefined
  }
  for (const part of [...graphs.values(), ...details.values(), ...parts.values()]) part.value = undefined
}

// updateTable takes a state or a patch of a table, and reports whether rows came, went or moved.
function updateTable(table: Table, value: Record<string, Partial<Summary> | null>, whole: boolean): boolean {
  let moved = !table.order.value
  if (whole) {
    for (const id of table.rows.keys()) {
      if (!(id in value)) moved = table.rows.delete(id)
    }
  }
  for (const [id, fields] of Object.entries(value)) {
    if (fields === null) {
      moved = table.rows.delete(id) || moved
      continue
    }
    const row = table.rows.get(id)
    if (!row) {
      table.rows.set(id, signal(merge({}, fields) as Summary))
      moved = true
      continue
    }
    const before = row.value
    row.value = merge(whole ? {} : before, fields) as Summary
    moved ||= before.position !== row.value.position || before.finished_at !== row.value.finished_at
  }
  return moved
}

function sorted(table: Table): string[] {
  const all = [...table.rows.values()].map((row) => row.peek())
  all.sort((a, b) => {
    if (a.position && b.position) return a.position - b.position
    if (a.position || b.position) return a.position ? -1 : 1
    return (b.finished_at ?? "").localeCompare(a.finished_at ?? "")
  })
  return all.map((s) => s.change)
}

// The stream is in a SharedWorker where there is one.

interface TrustedPolicy {
  createScriptURL(url: string): string
}
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): TrustedPolicy
}

function start(): { want(i: Interest): void; drop(): void; again(): void } {
  if (typeof SharedWorker !== "undefined") {
    const address = "/worker.js"
    const factory = (window as unknown as { trustedTypes?: TrustedTypes }).trustedTypes
    const policy = factory?.createPolicy("landfall", {
      createScriptURL(url) {
        if (url !== address) throw new Error("not the page's worker")
        return url
      },
    })
    // Another name than that of a worker with which a page of an older release speaks.
    const worker = new SharedWorker(policy ? policy.createScriptURL(address) : address, "landfall 2")
    worker.port.onmessage = (m: MessageEvent<Message[]>) => take(m.data)
    return { want: (i) => worker.port.postMessage(i), drop: () => worker.port.postMessage(null), again: () => worker.port.postMessage("again") }
  }
  const feed = new Feed()
  return { want: (i) => feed.want(take, i), drop: () => feed.drop(take), again: () => feed.again() }
}

const source = start()
interface Watched {
  changes?: string
  detail?: string
  graph?: string
  // part is the name of another part: "list dead-letters", "flakes QUEUE".
  part?: string
}

const interests = new Map<object, Watched>()

function tell() {
  const changes = new Set<string>()
  const watched = new Set<string>()
  const drawn = new Set<string>()
  const others = new Set<string>()
  for (const i of interests.values()) {
    if (i.changes) changes.add(i.changes)
    if (i.detail) watched.add(i.detail)
    if (i.graph) drawn.add(i.graph)
    if (i.part) others.add(i.part)
  }
  // What is not watched any more is not kept up, so it is forgotten.
  batch(() => {
    for (const [queue, table] of tables) {
      if (changes.has(queue)) continue
      table.rows.clear()
      table.order.value = undefined
    }
    for (const [key, detail] of details) if (!watched.has(key)) detail.value = undefined
    for (const [queue, graph] of graphs) if (!drawn.has(queue)) graph.value = undefined
    for (const [name, part] of parts) if (!others.has(name)) part.value = undefined
  })
  if (at.value) {
    source.drop()
    void readPast()
  } else source.want([...[...changes].map((q) => `changes ${q}`), ...[...watched].map((c) => `change ${c}`), ...[...drawn].map((q) => `graph ${q}`), ...others])
}

// reading is the state of what is read of the past: whether it is under way, waits for the gateway to read the log, and what is wrong.
export const reading = signal<{ under: boolean; waits?: boolean; wrong?: string }>({ under: false })

// readPast reads what is watched as it was at the moment that the address has. One reading is under way at a time, and begins again if
// another moment is chosen meanwhile.
let chosenAgain = false
let leave: AbortController | undefined
async function readPast() {
  chosenAgain = true
  if (reading.value.under) return
  reading.value = { under: true }
  let wrong: string | undefined
  while (chosenAgain && at.value) {
    chosenAgain = false
    wrong = undefined
    leave = new AbortController()
    try {
      const parts = await partsThen(at.value, leave.signal)
      if (parts && at.value) batch(() => parts.forEach((apply) => apply()))
    } catch (error) {
      wrong = error instanceof TypeError ? "The gateway does not answer." : (error as Error).message
    }
  }
  reading.value = { under: false, wrong: at.value ? wrong : undefined }
}

// partsThen returns what sets each part that is watched to what it was, undefined if another moment is chosen meanwhile.
async function partsThen(moment: string, signal: AbortSignal): Promise<(() => void)[] | undefined> {
  const get = async <T>(path: string, now = false): Promise<T | null | undefined> => {
    for (;;) {
      const answer = await fetch(now ? path : `${path}${path.includes("?") ? "&" : "?"}at=${encodeURIComponent(moment)}`, { signal })
      if (answer.ok) return (await answer.json()) as T
      const failure = (await answer.json().catch(() => undefined)) as Failure | undefined
      const code = failure?.error.code
      if (code === "unknown_change" || code === "unknown_queue") return null
      if (code !== "past_being_read" && code !== "not_ready" && code !== "too_many_requests") throw new Error(failure ? `${failure.error.message} ${failure.error.advice}` : `The gateway answers with ${answer.status}.`)
      reading.value = { under: true, waits: true }
      await new Promise((done) => setTimeout(done, 300))
      if (chosenAgain || !at.value) return undefined
    }
  }
  const r = route.value
  // The other queues are shown as they are, but on the page of all of them.
  const list = await get<QueueList>("/v1/queues", r.page !== "queues")
  if (!list) return undefined
  const overviews = named(Object.fromEntries(list.queues.map((q) => [q.queue, q])))
  const out: (() => void)[] = [() => (queues.value = overviews)]
  if ("queue" in r && overviews[r.queue]) {
    const then = await get<Overview>(`/v1/queues/${encodeURIComponent(r.queue)}`)
    if (then === undefined) return undefined
    if (then) overviews[r.queue] = then
  }
  for (const i of [...interests.values()]) {
    if (i.part) {
      const [kind, name] = [i.part.slice(0, i.part.indexOf(" ")), i.part.slice(i.part.indexOf(" ") + 1)]
      if (kind !== "flakes" && kind !== "quarantines") continue // what has no past
      const then = await get<unknown>(`/v1/queues/${encodeURIComponent(name)}/${kind}`)
      if (then === undefined) return undefined
      out.push(() => (partOf(i.part!).value = then ?? undefined))
      continue
    }
    const [queue, id] = i.detail ? [i.detail.slice(0, i.detail.indexOf("/")), i.detail.slice(i.detail.indexOf("/") + 1)] : [i.changes ?? i.graph!, ""]
    const path = `/v1/queues/${encodeURIComponent(queue)}`
    if (i.detail) {
      const then = await get<Change>(`${path}/changes/${encodeURIComponent(id)}`)
      if (then === undefined) return undefined
      out.push(() => (detailOf(queue, id).value = then))
    }
    if (i.changes) {
      const then = await get<ChangeList>(`${path}/changes?limit=${shownThen}`)
      if (!then) return undefined
      const table = tableOf(queue)
      out.push(() => {
        if (updateTable(table, Object.fromEntries(then.changes.map((s) => [s.change, s])), true)) table.order.value = sorted(table)
      })
    }
    if (i.graph) {
      const then = await get<Graph>(`${path}/graph`)
      if (!then) return undefined
      out.push(() => (graphOf(queue).value = then))
    }
  }
  return out
}

// shownThen is how many changes of a queue are shown of the past.
const shownThen = 1200

// watch has a queue's changes, its graph, a change, or another part kept up until the function that it returns is called.
export function watch(what: Watched): () => void {
  const token = {}
  interests.set(token, what)
  later()
  return () => {
    interests.delete(token)
    later()
  }
}

// readAgain has everything read again, as whoever the reader is now.
export const readAgain = () => source.again()

let asked = false
function later() {
  if (asked) return
  asked = true
  queueMicrotask(() => {
    asked = false
    tell()
  })
}

// Another moment is read; the present begins again with what the stream says.
let shown = at.value
effect(() => {
  const moment = at.value
  void route.value
  if (moment) later()
  else if (shown) {
    leave?.abort()
    forget()
    later()
  }
  shown = moment
})

later()
void askWho()
addEventListener("pagehide", () => source.drop())
addEventListener("pageshow", (e) => {
  if (e.persisted) tell()
})
