// What is around every page: where one is, whether the page is live, and what the keys do.

import { signal, useComputed } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { me, setMe } from "./me"
import { queuePath } from "./router"
import { queues, status } from "./store"
import { ago, exact, now } from "./words"

export function Header({ queue, children }: { queue?: string; children?: ComponentChildren }) {
  const names = Object.keys(queues.value ?? {}).sort()
  return (
    <header class="top">
      <a class="brand" href="/">
        Landfall
      </a>
      {queue !== undefined && (
        <nav aria-label="Queues">
          {names.length > 1 ? (
            names.slice(0, 12).map((name) => (
              <a key={name} href={queuePath(name)} aria-current={name === queue ? "page" : undefined}>
                {name}
              </a>
            ))
          ) : (
            <a href={queuePath(queue)} aria-current="page">
              {queue}
            </a>
          )}
        </nav>
      )}
      {children}
      <span class="space" />
      <Live />
      <Who />
      <button type="button" class="quiet" aria-label="Keys" aria-haspopup="dialog" onClick={() => (keysShown.value = true)}>
        ?
      </button>
    </header>
  )
}

// Live says whether what is shown is what is, and since when it is not.
function Live() {
  const { live, since, why } = status.value
  const text = useComputed(() => (status.value.live ? "live" : status.value.since === 0 ? "connecting" : `stale: last heard ${ago(new Date(status.value.since).toISOString(), now.value)}`))
  const stale = !live && since > 0
  return (
    <span class={stale ? "live stale" : "live"} role="status" title={live ? "What happens is shown at once." : `${why ?? "Connecting."}${stale ? ` Last heard ${exact(new Date(since).toISOString())}.` : ""}`}>
      <span aria-hidden="true">{live ? "●" : stale ? "▲" : "○"}</span> <span>{text}</span>
    </span>
  )
}

function Who() {
  return (
    <label class="who">
      <span>You</span>
      <input value={me.value} placeholder="your name" autocomplete="name" maxLength={200} onChange={(e) => setMe(e.currentTarget.value)} />
    </label>
  )
}

export const keysShown = signal(false)

const keys: [string, string][] = [
  ["j, k", "next and previous row"],
  ["Enter", "open the row in place"],
  ["o", "open the change's page"],
  ["/", "search"],
  ["g", "table or graph"],
  ["Esc", "close what is open"],
  ["?", "these keys"],
]

export function Keys() {
  return (
    <Dialog title="Keys" shown={keysShown.value} close={() => (keysShown.value = false)}>
      <dl class="keys">
        {keys.map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

// Dialog is modal; the browser keeps the focus in it, and gives it back.
export function Dialog({ title, shown, close, children }: { title: string; shown: boolean; close: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (shown && !ref.current?.open) ref.current?.showModal()
    if (!shown && ref.current?.open) ref.current.close()
  }, [shown])
  if (!shown) return null
  return (
    <dialog ref={ref} onClose={close} aria-label={title}>
      <h2>{title}</h2>
      {children}
      <form method="dialog">
        <button type="button" class="quiet close" onClick={close} aria-label="Close">
          ✕
        </button>
      </form>
    </dialog>
  )
}

// Notice says what is not there, and what to do.
export function Notice({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="notice">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

export function typing(e: KeyboardEvent): boolean {
  const on = e.target as Element
  return e.ctrlKey || e.metaKey || e.altKey || on.matches("input, textarea, select") || document.querySelector("dialog[open]") !== null
}
