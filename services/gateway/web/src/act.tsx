// What a reader may do to a change. Each asks first, and says who did it and why.

import { useSignal } from "@preact/signals"
import { Dialog } from "./frame"
import { me } from "./me"
import type { Change, Failure, Overview } from "./openapi"
import { final } from "./store"
import { plain } from "./words"

interface Action {
  name: string
  // does is the last part of the route.
  does: string
  asks: string
  body?: Record<string, unknown>
  danger?: boolean
}

function actionsOf(c: Change): Action[] {
  if (final(c.state)) {
    return c.state === "landed" ? [] : [{ name: "Retry", does: "retry", asks: "The same commits are put into the queue once more, at its end." }]
  }
  const held = c.holds ?? []
  const out: Action[] = []
  if (c.position !== 1) out.push({ name: "Move to front", does: "priority", asks: "It comes before all other changes, with the changes that it requires.", body: { front: true } })
  for (const h of held) out.push({ name: held.length > 1 ? `Release ${h.name}` : "Release", does: "release", asks: `It may land again. It was held by ${h.who || "somebody"}${h.why ? `: ${h.why}` : ""}.`, body: { hold: h.name } })
  if (held.length === 0) out.push({ name: "Hold", does: "hold", asks: "It is built, and does not land until it is released." })
  if (c.state === "waiting" && c.reasons.some((r) => r.code === "mainline_red")) out.push({ name: "Retry", does: "retry", asks: "What failed on the mainline and with the change is verified again." })
  out.push({ name: "Cancel", does: "cancel", asks: "It leaves the queue and does not land.", danger: true })
  return out
}

// send posts to the API, and returns what is wrong: "" if nothing is.
async function send(path: string, body: Record<string, unknown>): Promise<string> {
  // A header takes Latin letters alone, so who it is goes into the body.
  if (me.value) body = { ...body, who: me.value }
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
    if (answer.ok) return ""
    const failure = (await answer.json().catch(() => undefined)) as Failure | undefined
    return failure?.error ? `${failure.error.message} ${failure.error.advice}` : `The gateway answers with ${answer.status}. Look at the change as it is now, and try again.`
  } catch {
    return "The gateway does not answer. It may have been done: look at the change as it is now before you try again."
  }
}

export function Actions({ of }: { of: Change }) {
  const asked = useSignal<Action | undefined>(undefined)
  return (
    <div class="actions">
      {actionsOf(of).map((a) => (
        <button key={a.name} type="button" class={a.danger ? "danger" : ""} onClick={() => (asked.value = a)}>
          {a.name}
        </button>
      ))}
      {asked.value && (
        <Ask
          title={`${asked.value.name}: ${plain(of.title || of.change)}`}
          asks={asked.value.asks}
          button={asked.value.name}
          danger={asked.value.danger}
          close={() => (asked.value = undefined)}
          send={(why) => send(`/v1/queues/${encodeURIComponent(of.queue)}/changes/${encodeURIComponent(of.change)}/${asked.value!.does}`, { ...asked.value!.body, ...(why && { why }) })}
        />
      )}
    </div>
  )
}

// Pausing is the button by which a queue is paused or resumed.
export function Pausing({ of }: { of: Overview }) {
  const asked = useSignal(false)
  const does = of.paused ? "resume" : "pause"
  return (
    <>
      <button type="button" onClick={() => (asked.value = true)}>
        {of.paused ? "Resume" : "Pause"}
      </button>
      {asked.value && (
        <Ask
          title={`${of.paused ? "Resume" : "Pause"} the queue ${of.queue}`}
          asks={of.paused ? "Changes land again." : "Builds go on, and nothing lands until it is resumed."}
          button={of.paused ? "Resume" : "Pause"}
          close={() => (asked.value = false)}
          send={(why) => send(`/v1/queues/${encodeURIComponent(of.queue)}/${does}`, why ? { why } : {})}
        />
      )}
    </>
  )
}

function Ask({ title, asks, button, danger, close, send }: { title: string; asks: string; button: string; danger?: boolean; close: () => void; send: (why: string) => Promise<string> }) {
  const why = useSignal("")
  const wrong = useSignal("")
  const sending = useSignal(false)
  const confirm = async () => {
    sending.value = true
    wrong.value = await send(why.value.trim())
    sending.value = false
    if (!wrong.value) close()
  }
  return (
    <Dialog title={title} shown close={close}>
      <p>{plain(asks)}</p>
      <label class="reason">
        <span>Why (others read it)</span>
        <input autoFocus maxLength={300} value={why.value} onInput={(e) => (why.value = e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && !sending.value && confirm()} />
      </label>
      {!me.value && <p class="soft">Nobody is named as the one who does it: enter your name at the top of the page first if others should know.</p>}
      {wrong.value && (
        <p role="alert" class="wrong">
          {plain(wrong.value)}
        </p>
      )}
      <p class="line">
        <button type="button" class={danger ? "danger" : "main"} disabled={sending.value} onClick={confirm}>
          {button}
        </button>
        <button type="button" class="quiet" onClick={close}>
          Back
        </button>
      </p>
    </Dialog>
  )
}
