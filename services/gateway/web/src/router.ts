// The address holds everything that is chosen.

import { computed, signal } from "@preact/signals"

// writeEvery is how often the browser's address is written, in milliseconds: it takes 200 in ten seconds, and a slider moves more often.
const writeEvery = 100
let written = 0
let writtenAt = 0

export const address = signal(location.pathname + location.search)
addEventListener("popstate", (e) => {
  clearTimeout(written)
  written = 0
  address.value = location.pathname + location.search
  restore((e.state as Left | null)?.focus, 20)
})

// Left is what is kept of a page that was left: what had the focus, as a selector.
interface Left {
  focus?: string
}

function focused(): string | undefined {
  const e = document.activeElement
  const id = e?.closest<HTMLElement>("[data-change]")?.dataset.change ?? e?.closest("tr.panel")?.previousElementSibling?.querySelector<HTMLElement>("[data-change]")?.dataset.change
  if (id) return `[data-change="${CSS.escape(id)}"]`
  return e instanceof HTMLAnchorElement ? `a[href="${CSS.escape(e.getAttribute("href") ?? "")}"]` : undefined
}

// restore puts the focus where it was when the page was left, once that is drawn.
function restore(to: string | undefined, tries: number) {
  if (!to) return
  requestAnimationFrame(() => {
    const e = document.querySelector<HTMLElement>(to)
    if (!e) return tries > 0 && restore(to, tries - 1)
    e.focus({ preventScroll: true })
    e.scrollIntoView({ block: "nearest" })
  })
}

export type Route = { page: "queues" } | { page: "services" } | { page: "dead-letters" } | { page: "access" } | { page: "queue"; queue: string } | { page: "models"; queue: string } | { page: "flakes"; queue: string } | { page: "analytics"; queue: string } | { page: "change"; queue: string; change: string } | { page: "pool"; pool: string } | { page: "nothing" }

export const route = computed<Route>(() => {
  const parts = address.value
    .split("?")[0]!
    .split("/")
    .filter((p) => p !== "")
    .map(decode)
  if (parts.length === 0) return { page: "queues" }
  if (parts[0] === "services" && parts.length === 1) return { page: "services" }
  if (parts[0] === "dead-letters" && parts.length === 1) return { page: "dead-letters" }
  if (parts[0] === "access" && parts.length === 1) return { page: "access" }
  if (parts[0] === "pools" && parts.length === 2) return { page: "pool", pool: parts[1]! }
  if (parts[0] === "queues" && parts.length === 2) return { page: "queue", queue: parts[1]! }
  if (parts[0] === "queues" && parts[2] === "models" && parts.length === 3) return { page: "models", queue: parts[1]! }
  if (parts[0] === "queues" && parts[2] === "analytics" && parts.length === 3) return { page: "analytics", queue: parts[1]! }
  if (parts[0] === "queues" && parts[2] === "flakes" && parts.length === 3) return { page: "flakes", queue: parts[1]! }
  if (parts[0] === "queues" && parts[2] === "changes" && parts.length === 4) return { page: "change", queue: parts[1]!, change: parts[3]! }
  return { page: "nothing" }
})

export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""))

// at is the moment of the past that the address names, "" for now.
export const at = computed(() => query.value.get("at") ?? "")

// momentOf is a moment that an address names, in milliseconds since 1970; NaN for none, or one that no clock shows.
export function momentOf(text: string): number {
  const time = Date.parse(text)
  return time >= 0 && time < 253_000_000_000_000 ? time : NaN
}

// then keeps a link in the past.
const then = () => (at.value ? `?at=${encodeURIComponent(at.value)}` : "")

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const queuesPath = () => "/" + then()
export const queuePath = (queue: string) => `/queues/${encodeURIComponent(queue)}${then()}`
export const modelsPath = (queue: string) => `/queues/${encodeURIComponent(queue)}/models${then()}`
export const analyticsPath = (queue: string) => `/queues/${encodeURIComponent(queue)}/analytics${then()}`
export const servicesPath = () => `/services${then()}`
export const flakesPath = (queue: string) => `/queues/${encodeURIComponent(queue)}/flakes${then()}`
export const poolPath = (pool: string) => `/pools/${encodeURIComponent(pool)}${then()}`
export const deadLettersPath = () => `/dead-letters${then()}`
export const accessPath = () => `/access${then()}`
// changeAt is a change as it was at a moment, "" for now.
export const changeAt = (queue: string, change: string, moment: string) => `/queues/${encodeURIComponent(queue)}/changes/${encodeURIComponent(change)}${moment && `?at=${encodeURIComponent(moment)}`}`
export const changePath = (queue: string, change: string) => `/queues/${encodeURIComponent(queue)}/changes/${encodeURIComponent(change)}${then()}`

function write() {
  clearTimeout(written)
  written = 0
  writtenAt = Date.now()
  history.replaceState(history.state, "", address.value)
}

export function go(to: string, replace = false) {
  const next = new URL(to, location.href)
  if (!replace) {
    if (written) write() // the reader comes back to what was chosen last
    const left: Left = { focus: focused() }
    history.replaceState(left, "", address.value)
    history.pushState(null, "", next)
  }
  address.value = next.pathname + next.search
  if (!replace) return
  const wait = writtenAt + writeEvery - Date.now()
  if (wait <= 0) write()
  else written ||= setTimeout(write, wait)
}

// choose sets parameters of the address; an empty one is taken out.
export function choose(values: Record<string, string | string[]>, replace = true) {
  const next = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(values)) {
    next.delete(name)
    for (const one of [value].flat()) if (one) next.append(name, one)
  }
  const text = next.toString()
  go(location.pathname + (text ? "?" + text : ""), replace)
}

// A click on a link of the page's own does not load the page again.
addEventListener("click", (e) => {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
  const link = (e.target as Element).closest("a")
  if (!link || link.hasAttribute("target") || link.hasAttribute("download")) return
  const to = new URL(link.getAttribute("href") ?? "", location.href) // a link in an SVG has no other way to say it
  if (to.origin !== location.origin || to.pathname.startsWith("/v1/") || to.hash) return
  e.preventDefault()
  if (to.href === location.href) return
  go(to.pathname + to.search)
  scrollTo(0, 0)
  // What reads the page aloud begins with the new one.
  requestAnimationFrame(() => document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true }))
})
