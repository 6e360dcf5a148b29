// Times, durations and states in words.

import { computed, signal } from "@preact/signals"
import { useMemo } from "preact/hooks"
import type { ETA, Summary } from "./openapi"
import { at, momentOf } from "./router"

// now is the time in milliseconds, each second; of the past the moment that is shown.
const clock = signal(Date.now())
setInterval(() => (clock.value = Date.now()), 1000)
export const now = computed(() => momentOf(at.value) || clock.value)

export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds))
  if (s === 0 && seconds > 0) return "< 1 s"
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.round(s / 60)} min`
  if (s < 86_400) return `${Math.floor(s / 3600)} h${s % 3600 < 60 ? "" : ` ${Math.floor((s % 3600) / 60)} min`}`
  return `${Math.floor(s / 86_400)} d${s % 86_400 < 3600 ? "" : ` ${Math.floor((s % 86_400) / 3600)} h`}`
}

const exactly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" })
export const exact = (at: string) => exactly.format(new Date(at))

const onDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })
const inYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" })

// ago is how long ago something was, or of two days and more its date.
export function ago(at: string, from: number): string {
  const s = (from - Date.parse(at)) / 1000
  if (s < 3) return "just now"
  return s < 172_800 ? `${duration(s)} ago` : (s < 15_552_000 ? onDay : inYear).format(new Date(at))
}

const ofDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" })

// useNow returns say(now), and draws the component again when that changes. given are the other values that say uses.
export function useNow<T>(say: (now: number) => T, given: unknown[]): T {
  return useMemo(() => computed(() => say(now.value)), given).value
}

// Clock is the time of something, with its date if that is not today's.
export function Clock({ at }: { at: string }) {
  const time = new Date(at)
  return (
    <time dateTime={at} title={exact(at)}>
      {(new Date(now.value).toDateString() === time.toDateString() ? ofDay : onDay).format(time)}
    </time>
  )
}

// Ago is when something was, with the exact time on hover.
export function Ago({ at }: { at: string }) {
  const text = useNow((now) => ago(at, now), [at])
  return (
    <time dateTime={at} title={exact(at)}>
      {text}
    </time>
  )
}

// isPast reports whether a time has been past for a minute.
const isPast = (time: string | undefined, from: number) => time !== undefined && Date.parse(time) < from - 60_000

// isLate reports whether something is later by a minute than it was expected.
const isLate = (eta: ETA, from: number) => isPast(eta.to_90, from) || isPast(eta.overdue_from, from)

// etaText is when a change is likely to be decided.
export function etaText(eta: ETA | undefined, from: number): string {
  if (!eta) return ""
  if (eta.unknown || !eta.from_50 || !eta.to_50) return "no estimate"
  const low = (Date.parse(eta.from_50) - from) / 60_000
  const high = (Date.parse(eta.to_50) - from) / 60_000
  if (isLate(eta, from)) return "late"
  if (high < 0.75) return "any moment"
  const a = Math.max(0, Math.floor(low))
  const b = Math.max(1, Math.ceil(high))
  if (b > 120) return `in ${Math.max(0, Math.floor(a / 60))}–${Math.ceil(b / 60)} h`
  return a >= b - 1 && a === 0 ? `within ${b} min` : `in ${a}–${b} min`
}

export function etaTitle(eta: ETA | undefined): string {
  if (!eta) return ""
  if (eta.unknown || !eta.median) return `No estimate: ${eta.unknown ?? "it is being made"}.`
  if (isLate(eta, now.value)) return "Later than expected."
  const lands = eta.lands === undefined ? "" : ` It lands with a probability of ${Math.round(eta.lands * 100)} %.`
  return `As likely before ${exact(eta.median)} as after it; in half of the cases between ${exact(eta.from_50!)} and ${exact(eta.to_50!)}, in nine of ten between ${exact(eta.from_90!)} and ${exact(eta.to_90!)}.${lands}`
}

// etaSure is how sure an estimate is, or why there is none; "" if neither is known.
export function etaSure(eta: ETA | undefined, from: number): string {
  if (eta?.unknown) return eta.unknown
  if (eta && isLate(eta, from)) return isPast(eta.overdue_from, from) ? "a step of it takes longer than all of its build was predicted to" : "later than expected"
  if (!eta || !eta.to_50 || !eta.to_90) return ""
  const most = (Date.parse(eta.to_90) - from) / 1000
  return [most > 0 ? `19 of 20 within ${duration(most)}` : "", eta.lands === undefined ? "" : `lands with ${Math.round(eta.lands * 100)} %`].filter((text) => text !== "").join("; ")
}

export function Eta({ of }: { of: Summary }) {
  const text = useNow((now) => etaText(of.eta, now), [of.eta])
  return <span title={etaTitle(of.eta)}>{text}</span>
}

// Sure is how sure the estimate beside it is, or why there is none.
export function Sure({ of }: { of: ETA | undefined }) {
  const text = useNow((now) => etaSure(of, now), [of])
  return text ? <span class="soft">({plain(text)})</span> : null
}

// marks stand beside the word of a state, so that none is told by its colour alone.
export const marks: Record<string, string> = {
  waiting: "○",
  testing: "◐",
  scheduled: "○",
  passed: "●",
  landed: "✓",
  dropped: "↺",
  rejected: "✗",
  ejected: "⊘",
  cancelled: "–",
  preparing: "○",
  running: "◐",
  failed: "✗",
  timed_out: "✗",
  aborted: "–",
  could_not_run: "!",
  unusable: "✗",
  finished: "–",
  outstanding: "○",
  trivial: "·",
  unknown: "○",
}

// shown is the state of a change, or of a build, for people: while no step of it runs it is scheduled.
export const shown = (of: { state: string; steps_running?: number }) => ((of.state === "testing" || of.state === "running") && !of.steps_running ? "scheduled" : of.state)

export function State({ name }: { name: string }) {
  return (
    <span class={`state ${name}`}>
      <span aria-hidden="true">{marks[name] ?? "·"}</span> {name.replaceAll("_", " ")}
    </span>
  )
}

export const sentence = (text: string) => (text ? text[0]!.toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".") : "")

export const plural = (n: number, one: string, many = one + "s") => `${n.toLocaleString()} ${n === 1 ? one : many}`

// plain takes control characters and those that turn the direction of text out of it; what it came from is not trusted.
export const plain = (text: string) => text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, " ")

// webLink is an address if a browser opens it as a page.
export function webLink(address: string | undefined): string | undefined {
  if (!address || !URL.canParse(address)) return undefined
  const url = new URL(address)
  return url.protocol === "https:" || url.protocol === "http:" ? url.href : undefined
}
