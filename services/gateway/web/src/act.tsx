// What a reader may do to a change. Each asks first, and says who did it and why.

import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { Dialog, Fold, openDialog, SignedOut } from "./frame"
import { me, signedIn, useMay, who } from "./me"
import type { Change, Overview, Permission, Summary } from "./openapi"
import { failureOf } from "./read"
import { choose } from "./router"
import { final } from "./store"
import { plain, plural } from "./words"

interface Action {
  name: string
  // does is the last part of the route, and needs the verb that it asks for.
  does: string
  needs: Permission["verb"]
  asks: string
  body?: Record<string, unknown>
  danger?: boolean
}

function actionsOf(c: Change): Action[] {
  if (final(c.state)) {
    return c.state === "landed" ? [] : [{ name: "Retry", does: "retry", needs: "retry", asks: "The same commits are put into the queue once more, at its end." }]
  }
  const held = c.holds ?? []
  const out: Action[] = []
  if (c.position !== 1) out.push({ name: "Move to front", does: "priority", needs: "move", asks: "It comes before all other changes, with the changes that it requires.", body: { front: true } })
  for (const h of held) out.push({ name: held.length > 1 ? `Release ${h.name}` : "Release", does: "release", needs: "hold", asks: `It may land again. It was held by ${h.who || "somebody"}${h.why ? `: ${h.why}` : ""}.`, body: { hold: h.name } })
  if (held.length === 0) out.push({ name: "Hold", does: "hold", needs: "hold", asks: "It is built, and does not land until it is released. Changes behind it that meet it may wait as long." })
  if (c.blocked) out.push({ name: "Retry", does: "retry", needs: "retry", asks: "What failed on the mainline and with the change is verified again." })
  out.push({ name: "Cancel", does: "cancel", needs: "cancel", asks: "It leaves the queue and does not land.", danger: true })
  return out
}

// send posts to the API, and returns what is wrong: "" if nothing is. Some routes take no name.
export async function send(path: string, body: Record<string, unknown>, named = true): Promise<string> {
  // A header takes Latin letters alone, so who it is goes into the body.
  if (named && me.value && !signedIn.value) body = { ...body, who: me.value }
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
    if (answer.ok) return ""
    return failureOf(answer)
  } catch {
    return "The gateway does not answer. It may have been done: look at the change as it is now before you try again."
  }
}

const changeRoute = (queue: string, change: string, does: string) => `/v1/queues/${encodeURIComponent(queue)}/changes/${encodeURIComponent(change)}/${does}`

// Actions are the buttons for what the reader may do to a change, and why not the rest.
export function Actions({ of }: { of: Change }) {
  const may = useMay(of.queue, of.change)
  if (!may) return null
  const all = actionsOf(of)
  const ask = (a: Action) =>
    openDialog((close) => (
      <Ask title={`${a.name}: ${plain(of.title || of.change)}`} asks={a.asks} button={a.name} danger={a.danger} close={close} send={(why) => send(changeRoute(of.queue, of.change, a.does), { ...a.body, ...(why && { why }) })} />
    ))
  return (
    <div class="actions">
      {all
        .filter((a) => may(a.needs).allowed)
        .map((a) => (
          <button key={all.filter((b) => b.needs === a.needs).length > 1 ? a.name : a.needs} type="button" class={a.danger ? "danger" : ""} aria-haspopup="dialog" onClick={() => ask(a)}>
            {a.name}
          </button>
        ))}
      <Refused name={of.change} of={all.filter((a) => !may(a.needs).allowed).map((a) => [a.name, may(a.needs)])} />
    </div>
  )
}

// Refused says what the reader may not do, and why.
function Refused({ name, of }: { name: string; of: [string, Permission][] }) {
  if (of.length === 0) return null
  const names = new Map<string, string[]>()
  for (const [action, p] of of) {
    const why = `${p.message ?? ""} ${p.advice ?? ""}`
    names.set(why, [...(names.get(why) ?? []), action])
  }
  return (
    <Fold class="refused" name={`may not ${name}`} summary="What you may not do">
      <ul>
        {[...names].map(([why, what]) => (
          <li key={why}>
            {plain(what.join(", "))}: {plain(why)}
          </li>
        ))}
      </ul>
    </Fold>
  )
}

// Pausing is the button by which a queue is paused or resumed.
export function Pausing({ of }: { of: Overview }) {
  const name = of.paused ? "Resume" : "Pause"
  return <OfQueue queue={of.queue} name={name} does={name.toLowerCase()} needs="pause" title={`${name} the queue ${of.queue}`} asks={of.paused ? "Changes land again." : "Builds go on, and nothing lands until it is resumed."} />
}

// RetryMainline is the button by which what fails on the mainline is verified again.
export function RetryMainline({ of }: { of: Overview }) {
  return (
    <OfQueue
      queue={of.queue}
      name="Retry the mainline"
      does="retry"
      needs="verify"
      title={`Retry the mainline of ${of.queue}`}
      asks="What failed on the mainline no longer counts, and is verified there again. That helps where it failed by chance, or where something outside is mended, such as a server that its steps need. Where the code is broken, land what mends it instead."
    />
  )
}

// OfQueue is a button for something that is done to a queue, and why the reader may not.
function OfQueue({ queue, name, does, needs, title, asks }: { queue: string; name: string; does: string; needs: Permission["verb"]; title: string; asks: string }) {
  const may = useMay(queue)
  if (!may) return null
  if (!may(needs).allowed) return <Refused name={name} of={[[name, may(needs)]]} />
  const ask = () => openDialog((close) => <Ask title={title} asks={asks} button={name} close={close} send={(why) => send(`/v1/queues/${encodeURIComponent(queue)}/${does}`, why ? { why } : {})} />)
  return (
    <button type="button" aria-haspopup="dialog" onClick={ask}>
      {name}
    </button>
  )
}

// several are actions on all changes that are picked. fits reports whether one makes sense for a change.
const several: (Action & { fits: (s: Summary) => boolean | undefined })[] = [
  { name: "Hold", does: "hold", needs: "hold", asks: "They are built, and do not land until they are released. Changes behind them that meet them may wait as long.", fits: (s) => !final(s.state) && !s.held },
  { name: "Release", does: "release", needs: "hold", asks: "They may land again.", fits: (s) => !!s.held },
  { name: "Move to front", does: "priority", needs: "move", asks: "They come before all other changes, in the order that they have.", body: { front: true }, fits: (s) => !final(s.state) },
  { name: "Retry", does: "retry", needs: "retry", asks: "What has left is put into the queue once more, at its end. Of what waits for the mainline, what failed is verified again.", fits: (s) => s.blocked || (final(s.state) && s.state !== "landed") },
  { name: "Cancel", does: "cancel", needs: "cancel", asks: "They leave the queue and do not land.", danger: true, fits: (s) => !final(s.state) },
]

// Several are the buttons for what the reader may do to all changes that are picked, which are in queue order.
export function Several({ queue, picked, shown, may }: { queue: string; picked: Summary[]; shown: string[]; may: (verb: Permission["verb"]) => Permission }) {
  const sendAll = async (action: Action, them: Summary[], why: string) => {
    const refused: string[] = []
    const left: string[] = []
    // The one that is moved last is first.
    for (const s of action.does === "priority" ? [...them].reverse() : them) {
      const wrong = await send(changeRoute(queue, s.change, action.does), { ...action.body, ...(why && { why }) })
      if (!wrong) continue
      left.push(s.change)
      refused.push(`${s.title || s.change}: ${wrong}`)
    }
    choose({ pick: left })
    return refused.length === 0 ? "" : `${refused.length} of ${plural(them.length, "change")} refused. ${refused.slice(0, 5).join(" ")}${refused.length > 5 ? " …" : ""}`
  }
  const ask = (a: (typeof several)[number]) => {
    const them = picked.filter(a.fits)
    openDialog((close) => <Ask title={`${a.name}: ${plural(them.length, "change")}`} asks={a.asks} button={a.name} danger={a.danger} close={close} send={(why) => sendAll(a, them, why)} />)
  }
  return (
    <div class="line several" role="group" aria-label="What is done to the changes that are picked">
      <span role="status">{plural(picked.length, "change")} picked</span>
      {several
        .filter((a) => may(a.needs).allowed && picked.some(a.fits))
        .map((a) => (
          <button key={a.name} type="button" class={a.danger ? "danger" : ""} aria-haspopup="dialog" onClick={() => ask(a)}>
            {a.name} {picked.filter(a.fits).length.toLocaleString()}
          </button>
        ))}
      <span class="space" />
      {shown.length > picked.length && (
        <button type="button" class="quiet" onClick={() => choose({ pick: shown.slice(0, mostPicked) })}>
          Pick {shown.length > mostPicked ? `the first ${mostPicked}` : "all that are shown"}
        </button>
      )}
      <button type="button" class="quiet" onClick={() => choose({ pick: "" })}>
        Pick none
      </button>
    </div>
  )
}

// mostPicked bounds how many changes are picked: they are in the address, and each is a request.
export const mostPicked = 100

// Ask has the reader confirm something, with a reason, which has to be given where others need it. children are further fields.
export function Ask({ title, asks, button, danger, needsWhy, close, send, children }: { title: string; asks: string; button: string; danger?: boolean; needsWhy?: boolean; close: () => void; send: (why: string) => Promise<string>; children?: ComponentChildren }) {
  const why = useSignal("")
  const wrong = useSignal("")
  const sending = useSignal(false)
  const lacks = needsWhy && !why.value.trim()
  const confirm = async () => {
    sending.value = true
    wrong.value = await send(why.value.trim())
    sending.value = false
    if (!wrong.value) close()
  }
  return (
    <Dialog title={title} close={close}>
      <p>{plain(asks)}</p>
      {children}
      <label class="reason">
        <span>Why (others read it)</span>
        <input autoFocus maxLength={300} value={why.value} onInput={(e) => (why.value = e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && !sending.value && !lacks && confirm()} />
      </label>
      <SignedOut />
      {!me.value && who.value && !signedIn.value && <p class="soft">Nobody is named as the one who does it: enter your name at the top of the page first if others should know.</p>}
      {wrong.value && (
        <p role="alert" class="wrong">
          {plain(wrong.value)}
        </p>
      )}
      <p class="line">
        <button type="button" class={danger ? "danger" : "main"} disabled={sending.value || lacks} onClick={confirm}>
          {button}
        </button>
        <button type="button" class="quiet" onClick={close}>
          Back
        </button>
      </p>
    </Dialog>
  )
}
