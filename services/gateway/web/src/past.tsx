// The bar at the bottom edge: now, or a moment of the past, which is in the address.

import { effect, signal, useComputed } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { Typed } from "./frame"
import { asking } from "./read"
import { at, choose, momentOf, query } from "./router"
import { reading } from "./store"
import { exact, now, plain } from "./words"

const minute = 60_000
const spans: [string, number][] = [
  ["10 minutes", 10 * minute],
  ["hour", 60 * minute],
  ["6 hours", 360 * minute],
  ["day", 1440 * minute],
  ["week", 10_080 * minute],
  ["30 days", 43_200 * minute],
]
const steps = 1000

// end is the moment that the slider's right end stood for when the reader left the present.
const end = signal(Date.now())
const playing = signal(false)
effect(() => {
  if (at.value) return
  end.value = Date.now()
  playing.value = false
})

// show goes to a moment; one that is not before the end is the present.
function show(moment: number) {
  choose({ at: moment >= end.value ? "" : new Date(moment).toISOString() })
}

// spanOf is the time that the slider covers: what is chosen, or more if the moment lies before that.
function spanOf(): number {
  const chosen = Number(query.value.get("span") ?? "")
  const needed = at.value ? end.value - momentOf(at.value) : 0
  const least = spans.some(([, ms]) => ms / minute === chosen) ? chosen * minute : 60 * minute
  return least >= needed ? least : (spans.find(([, ms]) => ms >= needed)?.[1] ?? needed)
}

// local is a moment in the reader's own time, as it is typed.
function local(moment: number): string {
  return new Date(moment - new Date(moment).getTimezoneOffset() * minute).toISOString().slice(0, 19).replace("T", " ")
}

// PastSign says that the past is shown, and what is wrong with that.
export function PastSign() {
  const moment = at.value
  if (!moment) return null
  const wrong = reading.value.wrong
  return (
    <section class="past-sign" aria-label="The past">
      <strong>This is the past</strong>
      {Number.isNaN(momentOf(moment)) ? <span>The address names no moment.</span> : <time dateTime={moment}>{exact(moment)}</time>}
      <span>Nothing can be done here, and which services were at work is not known.</span>
      {reading.value.waits && <span role="status">The log is being read up to there…</span>}
      {wrong && <span role="alert">{plain(wrong)}</span>}
      <span class="space" />
      <button type="button" onClick={() => choose({ at: "" }, false)}>
        Back to now
      </button>
    </section>
  )
}

export function PastBar() {
  const span = useComputed(spanOf).value
  const moment = at.value ? momentOf(at.value) : Math.max(end.value, now.value)
  useEffect(() => {
    if (!playing.value) return
    // The next moment comes once the one before is shown.
    const timer = setInterval(() => {
      if (!reading.value.under && asking.value === 0 && at.value) show(momentOf(at.value) + span / 240)
    }, 500)
    return () => clearInterval(timer)
  }, [playing.value, span])
  if (Number.isNaN(moment)) return null
  const place = Math.min(steps, Math.round(steps * (1 - (end.value - moment) / span)))
  return (
    <section class="past-bar" aria-label="Moment">
      <button type="button" class="quiet" disabled={!at.value} aria-pressed={playing.value} onClick={() => (playing.value = !playing.value)}>
        {playing.value ? "‖ Stop" : "▶ Play"}
      </button>
      <input
        type="range"
        min={0}
        max={steps}
        value={place}
        aria-label="Moment that is shown"
        aria-valuetext={at.value ? exact(at.value) : "now"}
        onInput={(e) => {
          if (!at.value) end.value = Date.now()
          show(end.value - span * (1 - Number(e.currentTarget.value) / steps))
        }}
      />
      <Typed
        class="moment"
        size={19}
        maxLength={40}
        aria-label="Date and time that is shown"
        value={local(moment)}
        use={(text) => {
          const chosen = momentOf(text.trim().replace(" ", "T"))
          if (!Number.isNaN(chosen)) show(chosen)
        }}
      />
      <label>
        <span class="unseen">The slider covers the last</span>
        <select value={String(span / minute)} onChange={(e) => choose({ span: e.currentTarget.value })}>
          {!spans.some(([, ms]) => ms === span) && <option value={String(span / minute)}>more</option>}
          {spans.map(([name, ms]) => (
            <option key={ms} value={String(ms / minute)}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </section>
  )
}
