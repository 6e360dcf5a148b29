// Who reads the page. Nothing proves it; it is sent as X-Landfall-User, and is whose changes are "mine".

import { signal } from "@preact/signals"

const key = "landfall.user"

function kept(): string {
  try {
    return localStorage.getItem(key) ?? ""
  } catch {
    return "" // the browser keeps nothing
  }
}

export const me = signal(kept())

export function setMe(name: string) {
  me.value = name.trim().slice(0, 200)
  try {
    localStorage.setItem(key, me.value)
  } catch {
    // It is known until the page is closed.
  }
}

// isMine reports whether an author is who reads the page: Ada is the author of "Ada Byron <ada@example.com>".
export function isMine(author: string | undefined, name: string): boolean {
  return !!author && name !== "" && author.toLowerCase().includes(name.toLowerCase())
}
