// What is read once and not kept up by the stream: read again when the reader comes back to the page, signs in, or does something.

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { who } from "./me"
import type { Failure } from "./openapi"
import { status } from "./store"

// failureOf is what is wrong with an answer, in words.
export async function failureOf(answer: Response): Promise<string> {
  const failure = (await answer.json().catch(() => undefined)) as Failure | undefined
  return failure?.error ? `${failure.error.message} ${failure.error.advice}` : `The gateway answers with ${answer.status}.`
}

// useRead is what a route answers: undefined until it has. Nothing is asked while the gateway is away or has not read its log.
export function useRead<T>(path: string): { value: T | undefined; wrong: string; again: () => void } {
  const value = useSignal<T | undefined>(undefined)
  const wrong = useSignal("")
  const turn = useSignal(0)
  const reader = who.value
  const live = status.value.live
  useEffect(() => {
    if (!reader) {
      value.value = undefined
      return
    }
    if (!live) return
    const given = new AbortController()
    const read = async () => {
      const answer = await fetch(path, { signal: given.signal })
      if (answer.ok) {
        value.value = (await answer.json()) as T
        wrong.value = ""
      } else wrong.value = await failureOf(answer)
    }
    read().catch((e: Error) => given.signal.aborted || (wrong.value = `It cannot be read: ${e.message}.`))
    return () => given.abort()
  }, [path, reader, live, turn.value])
  useEffect(() => {
    const seen = () => document.visibilityState === "visible" && turn.value++
    addEventListener("visibilitychange", seen)
    return () => removeEventListener("visibilitychange", seen)
  }, [])
  return { value: value.value, wrong: wrong.value, again: () => turn.value++ }
}
