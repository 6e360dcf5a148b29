// What is around every page: where one is, whether the page is live, and what the keys do.

import { computed, effect, signal, useComputed, useSignal } from "@preact/signals"
import { Fragment, type ComponentChildren, type JSX } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { me, setMe, signedIn, signInAddress, signOut, ways, who } from "./me"
import { accessPath, address, analyticsPath, at, choose, deadLettersPath, flakesPath, modelsPath, poolPath, query, queuePath, queuesPath, route, servicesPath } from "./router"
import { queues, readAgain, status } from "./store"
import { ago, exact, now, plain, webLink } from "./words"

export function Header({ queue, children }: { queue?: string; children?: ComponentChildren }) {
  const names = Object.keys(queues.value ?? {}).sort()
  const pools = new Set(Object.values(queues.value ?? {}).map((q) => q.pool?.name))
  const pool = queue !== undefined ? queues.value?.[queue]?.pool?.name : pools.size === 1 ? [...pools][0] : undefined
  // On a phone the other pages are shown on demand, and until one is gone to.
  const more = useSignal(false)
  const address = route.value
  useEffect(() => {
    more.value = false
  }, [address])
  return (
    <header class="top">
      <a class="brand" href={queuesPath()}>
        Landfall
      </a>
      {(queue !== undefined || names.length > 0) && (
        <nav aria-label="Queues">
          {(names.length > 1 || queue === undefined ? names.slice(0, 12) : [queue]).map((name) => (
            <a key={name} href={queuePath(name)} aria-current={name === queue ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
      )}
      {children}
      <span class="space" />
      <button type="button" class="quiet more" aria-expanded={more.value} aria-controls="more" onClick={() => (more.value = !more.value)}>
        ☰ More
      </button>
      <nav id="more" class={more.value ? "more shown" : "more"} aria-label="Pages">
        {queue !== undefined && (
          <>
            <a class="soft" href={flakesPath(queue)}>
              Failing targets
            </a>
            <a class="soft" href={modelsPath(queue)}>
              Models
            </a>
            <a class="soft" href={analyticsPath(queue)}>
              Figures
            </a>
          </>
        )}
        {pool !== undefined && (
          <a class="soft" href={poolPath(pool)}>
            Workers
          </a>
        )}
        <a class="soft" href={servicesPath()}>
          Services
        </a>
        <a class="soft" href={deadLettersPath()}>
          Dead letters
        </a>
        <a class="soft" href={accessPath()}>
          Access
        </a>
      </nav>
      <Live />
      <Who queue={queue} />
      <button type="button" class="quiet" aria-label="Keys and words" aria-haspopup="dialog" onClick={openKeys}>
        ?
      </button>
    </header>
  )
}

// Live says whether what is shown is what is, and since when it is not.
function Live() {
  const { live, since, why, refused } = status.value
  const text = useComputed(() => (status.value.live ? "live" : status.value.refused ? "not signed in" : status.value.since === 0 ? "connecting" : `stale: last heard ${ago(new Date(status.value.since).toISOString(), now.value)}`))
  if (at.value) return <span class="live stale">◷ past</span>
  const stale = !live && !refused && since > 0
  return (
    <span class={stale ? "live stale" : "live"} role="status" title={live ? "What happens is shown at once." : `${why ?? "Connecting."}${stale ? ` Last heard ${exact(new Date(since).toISOString())}.` : ""}`}>
      <span aria-hidden="true">{live ? "●" : stale ? "▲" : "○"}</span> <span>{text}</span>
    </span>
  )
}

// Who says who reads the page: who has signed in, else the name that is given.
function Who({ queue }: { queue?: string }) {
  const reader = who.value
  if (signedIn.value && reader) {
    const role = queue === undefined ? undefined : ((Object.hasOwn(reader.roles, queue) && reader.roles[queue]) || "no role")
    return (
      <span class="who">
        <span title={`${reader.subject} at ${reader.issuer}`}>
          <bdi class="name">{plain(reader.name || reader.subject)}</bdi>
          {role && <span>, {role}</span>}
        </span>
        <button type="button" class="quiet" aria-haspopup="dialog" onClick={() => openDialog((close) => <Leaving close={close} />)}>
          Sign out
        </button>
      </span>
    )
  }
  return (
    <>
      {reader && (
        <label class="who">
          <span>You</span>
          <Typed value={me.value} use={setMe} placeholder="your name" autocomplete="name" maxLength={200} />
        </label>
      )}
      {ways.value.length > 0 && reader && (
        <span class="who">
          <SignInLinks />
        </span>
      )}
    </>
  )
}

// Typed is a field of text that is used once it is left or entered. What is typed stays while the page is drawn again.
export function Typed({ value, use, ...rest }: { value: string; use: (text: string) => void } & Partial<Pick<JSX.IntrinsicElements["input"], "class" | "size" | "maxLength" | "placeholder" | "autocomplete" | "aria-label">>) {
  const draft = useSignal<string | undefined>(undefined)
  return (
    <input
      {...rest}
      value={draft.value ?? value}
      onInput={(e) => (draft.value = e.currentTarget.value)}
      onChange={(e) => {
        use(e.currentTarget.value)
        draft.value = undefined
      }}
      onBlur={() => (draft.value = undefined)}
    />
  )
}

// SignInLinks lead to where the reader signs in, and back to what the address has now.
export function SignInLinks({ target }: { target?: "_blank" }) {
  return (
    <>
      {ways.value.map((w) => (
        <a key={w.name} class="signin" href={signInAddress(w)} target={target} title={w.problem && plain(w.problem)}>
          Sign in by {w.name}
        </a>
      ))}
    </>
  )
}

// SignedOut tells who fills in a dialog that the session has ended. What is typed stays, and can be sent after signing in elsewhere.
export function SignedOut() {
  if (who.value !== null) return null
  return (
    <p role="alert" class="wrong">
      You are not signed in any more. What you have typed stays here{ways.value.length > 0 && <>: sign in in another tab, then send it. <SignInLinks target="_blank" /></>}{ways.value.length === 0 && "."}
    </p>
  )
}

// left is where the reader signs out at the provider too, "" if it is not known.
const left = signal<string | undefined>(undefined)

// Leaving asks whether to sign out here or everywhere.
export function Leaving({ close }: { close: () => void }) {
  const wrong = useSignal("")
  const leave = async (everywhere: boolean) => {
    const done = await signOut(everywhere)
    if (done.wrong !== undefined) {
      wrong.value = done.wrong
      return
    }
    left.value = webLink(done.provider) ?? ""
    who.value = undefined
    readAgain()
    close()
  }
  return (
    <Dialog title="Sign out" close={close}>
      <p>Nothing is shown until you sign in again. Your other browsers stay signed in, unless you sign out everywhere.</p>
      {wrong.value && (
        <p role="alert" class="wrong">
          {wrong.value}
        </p>
      )}
      <p class="line">
        <button type="button" class="main" onClick={() => leave(false)}>
          Sign out
        </button>
        <button type="button" onClick={() => leave(true)}>
          Sign out everywhere
        </button>
        <button type="button" class="quiet" onClick={close}>
          Back
        </button>
      </p>
    </Dialog>
  )
}

// SignIn is shown to whom the gateway does not know.
export function SignIn() {
  return (
    <Notice title={left.value === undefined ? "Sign in to see the queues" : "You are signed out"}>
      {ways.value.length > 0 ? (
        <p class="line">
          <SignInLinks />
        </p>
      ) : (
        <p>
          This gateway shows its queues to whom it knows, and nobody can sign in with a browser here. Commands and programs give a token (<code>LANDFALL_TOKEN</code>). For people, name an issuer with a <code>client_id</code> in <code>access.issuers</code>.
        </p>
      )}
      {ways.value.some((w) => w.problem) && (
        <p role="alert" class="wrong">
          {ways.value.filter((w) => w.problem).map((w) => `${w.name} cannot be used now: ${plain(w.problem!)}. `)}
        </p>
      )}
      {left.value && (
        <p>
          Your provider still knows you. <a href={left.value}>Sign out there too</a>
        </p>
      )}
    </Notice>
  )
}

const keys: [string, string][] = [
  ["j, k", "next and previous row"],
  ["Enter", "open the row in place"],
  ["o", "open the change's page"],
  ["/", "search"],
  ["x", "pick the row, to do something to several"],
  ["g", "table or graph"],
  ["Esc", "close what is open"],
  ["?", "these keys and words"],
]

const words: [string, string][] = [
  ["waiting", "in the queue, and nothing is built for it now"],
  ["scheduled", "a tree that may become the mainline was made for it, and its steps wait for workers"],
  ["testing", "steps of it run"],
  ["passed", "all that it needs is proven; it lands next, or behind what is ahead of it"],
  ["in 2–5 min", "when it is likely to be decided: the range holds for half of the cases, and its page says more"],
  ["any moment", "that range ends within 45 seconds"],
  ["no estimate", "when it is decided cannot be said, or not yet; its page says why"],
  ["P50, P95", "within how long half, and 95 of 100, of the changes landed that did so in the last four hours"],
  ["meets", "two changes affect the same target, or do not merge: the later one is tested with and without the earlier"],
  ["future", "the changes ahead that land, and those that do not; a build proves one"],
  ["rejected", "it breaks a target, or does not merge; revise it and ask again"],
  ["ejected", "it left without being red: its steps could not run, or the remote refuses its push; revise or retry it"],
  ["held", "it is tested, and does not land until it is released"],
  ["quarantined", "a target that runs and is reported, and blocks nobody"],
]

export const openKeys = () => openDialog((close) => <Keys close={close} />)

function Keys({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys and words" close={close}>
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
      <h3>What the words mean</h3>
      <dl class="about">
        {words.map(([word, means]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{means}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

type Draw = (close: () => void) => ComponentChildren

// dialog is the one that is open. It is drawn beside the page, so that it and what is typed in it stay when what opened it is gone.
const dialog = signal<{ id: number; draw: Draw } | undefined>(undefined)
let opened = 0

export function openDialog(draw: Draw) {
  dialog.value = { id: ++opened, draw }
}

export function OpenDialog() {
  const one = dialog.value
  if (!one) return null
  // The browser tells that it has closed a dialog a moment later: another one may be open by then.
  const close = () => {
    if (dialog.value === one) dialog.value = undefined
  }
  return <Fragment key={one.id}>{one.draw(close)}</Fragment>
}

// A dialog closes when the reader goes to another page.
const path = computed(() => address.value.split("?")[0])
effect(() => {
  void path.value
  dialog.value = undefined
})

// Dialog is modal; the browser keeps the focus in it. What opened it has the focus again afterwards.
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opener = document.activeElement
    ref.current!.showModal()
    return () => {
      // Not close(): its event would come later, and close what has been opened since.
      requestAnimationFrame(() => {
        if (document.activeElement !== document.body) return
        const to = opener instanceof HTMLElement && opener.isConnected ? opener : document.querySelector<HTMLElement>("h1")
        to?.focus({ preventScroll: true })
      })
    }
  }, [])
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

// Fold is a part of the page that the reader folds and unfolds. The address keeps which are not as they would be. A function is called for
// what is in it while that is unfolded.
export function Fold({ name, open = false, summary, children, ...rest }: { name: string; open?: boolean; summary: ComponentChildren; children: ComponentChildren | (() => ComponentChildren); class?: string }) {
  const isShown = () => query.value.getAll("unfold").includes(name) || (open && !query.value.getAll("fold").includes(name))
  const shown = isShown()
  const turn = (e: Event) => {
    e.preventDefault()
    // As the address is now: others may have been turned since this was drawn.
    const shown = isShown()
    const others = (of: string) => query.value.getAll(of).filter((n) => n !== name)
    choose({ unfold: shown || open ? others("unfold") : [...others("unfold"), name], fold: shown && open ? [...others("fold"), name] : others("fold") })
  }
  return (
    <details open={shown} {...rest}>
      <summary onClick={turn}>{summary}</summary>
      {typeof children !== "function" ? children : shown && children()}
    </details>
  )
}

// Wide is a table that scrolls by itself where it is wider than the page.
export function Wide({ name, heads, children }: { name: string; heads: string[]; children: ComponentChildren }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={name}>
      <table class="facts">
        <thead>
          <tr>
            {heads.map((h) => (
              <th key={h} scope="col">
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

// Reading is shown in the place of what has not come yet.
export function Reading({ what }: { what: string }) {
  return <p class="soft">{status.value.live || at.value ? `Reading ${what}…` : `The gateway does not answer, so ${what} cannot be read yet. It is asked again.`}</p>
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
