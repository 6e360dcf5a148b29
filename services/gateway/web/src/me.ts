// Who reads the page: somebody who has signed in, or, where the gateway believes names, a name that is sent as the one who does
// something. It is also whose changes are "mine".

import { computed, signal, useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Permission, SignInWays, SignOutReply, Way, WhoAmI } from "./openapi"
import { address, at } from "./router"

const key = "landfall.user"

function kept(): string {
  try {
    return localStorage.getItem(key) ?? ""
  } catch {
    return "" // the browser keeps nothing
  }
}

const typed = signal(kept())

export function setMe(name: string) {
  typed.value = name.trim().slice(0, 200)
  try {
    localStorage.setItem(key, typed.value)
  } catch {
    // It is known until the page is closed.
  }
}

// who is what the gateway takes the reader for: null for nobody, undefined until it has answered.
export const who = signal<WhoAmI | null | undefined>(undefined)

// ways are those by which a browser signs in.
export const ways = signal<Way[]>([])

export const signedIn = computed(() => !!who.value && who.value.issuer !== "open")

// me is the reader's address or name, "" if neither is known.
export const me = computed(() => (signedIn.value ? who.value!.email || who.value!.name || "" : typed.value))

// askWho asks the gateway who reads the page. Where it does not answer, what was known stays.
export async function askWho() {
  try {
    const answer = await fetch("/v1/whoami")
    if (answer.ok) {
      const now = (await answer.json()) as WhoAmI
      if (JSON.stringify(now) !== JSON.stringify(who.value)) who.value = now
    } else if (answer.status === 401) who.value = null
    const list = await fetch("/v1/signin")
    if (list.ok) ways.value = ((await list.json()) as SignInWays).issuers.filter((w) => w.start)
  } catch {
    // The stream says that it is away, and it is asked again when the stream goes on.
  }
}

// signInAddress is where a browser begins to sign in. It comes back to where it is.
export function signInAddress(by: Way): string {
  const here = address.value
  return `${by.start}?${new URLSearchParams({ to: here.length > 1000 ? "/" : here })}`
}

// signOut ends the session, or all of the reader at this gateway. It returns what is wrong, and where to sign out at the provider.
export async function signOut(everywhere: boolean): Promise<{ wrong?: string; provider?: string }> {
  try {
    const answer = await fetch("/v1/signout", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ everywhere }) })
    if (!answer.ok) return { wrong: `The gateway answers with ${answer.status}. Try again.` }
    return { provider: ((await answer.json()) as SignOutReply).provider }
  } catch {
    return { wrong: "The gateway does not answer. You may still be signed in: try again." }
  }
}

// useMay is what the reader may do to a queue, or to a change of it: undefined until it is known, and of the past.
export function useMay(queue: string, change = ""): ((verb: Permission["verb"]) => Permission) | undefined {
  const list = useSignal<Permission[] | undefined>(undefined)
  const reader = at.value ? undefined : who.value
  useEffect(() => {
    if (!reader) {
      list.value = undefined
      return
    }
    const given = new AbortController()
    fetch(`/v1/whoami?${new URLSearchParams({ queue, change })}`, { signal: given.signal })
      .then(async (answer) => (list.value = answer.ok ? ((await answer.json()) as WhoAmI).may : undefined))
      .catch(() => undefined) // who reads the page is asked for again when the gateway answers
    return () => given.abort()
  }, [queue, change, reader])
  if (!reader || !list.value) return undefined
  return (verb) => list.value!.find((p) => p.verb === verb) ?? { verb, allowed: false }
}

// isMine reports whether an author is who reads the page: Ada is the author of "Ada Byron <ada@example.com>".
export function isMine(author: string | undefined, name: string): boolean {
  return !!author && name !== "" && author.toLowerCase().includes(name.toLowerCase())
}
