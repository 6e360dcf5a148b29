// What a route answers, read again when the stream says that it has changed, and when the reader signs in.

import { signal, useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import { who } from "./me"
import type { Failure } from "./openapi"
import { at } from "./router"
import { partOf, status, watch } from "./store"

// failureOf is what is wrong with an answer, in words.
export async function failureOf(answer: Response): Promise<string> {
  const failure = (await answer.json().catch(() => undefined)) as Failure | undefined
  return failure?.error ? `${failure.error.message} ${failure.error.advice}` : `The gateway answers with ${answer.status}.`
}

// pause is after how long it is asked again, in milliseconds.
const pause = 3000

// asking is how many answers about the past are being waited for.
export const asking = signal(0)

// useRead is what a route answers: undefined until it has. With the name of a list it is kept up, as the stream says, or read as it was at
// the moment of the past that is shown; without one what it answers rests on the configuration, or on times in the path. The present is not
// asked for while the gateway is away or has not read its log, and what it could not answer is asked again.
export function useRead<T>(path: string, list = ""): { value: T | undefined; wrong: string } {
  const value = useSignal<T | undefined>(undefined)
  const wrong = useSignal("")
  const turn = useSignal(0)
  const reader = who.value
  const live = status.value.live
  const count = list ? partOf<number>(list).value : 0
  const moment = at.value
  const shown = useRef(moment)
  const asks = list && moment ? `${path}${path.includes("?") ? "&" : "?"}at=${encodeURIComponent(moment)}` : path
  useEffect(() => (list ? watch({ part: list }) : undefined), [list])
  useEffect(() => {
    if (!reader) {
      value.value = undefined
      return
    }
    if (list && !!shown.current !== !!moment) value.value = undefined // one is of the past
    shown.current = moment
    if (!moment && (!live || count === undefined)) return
    const given = new AbortController()
    let waits = !!moment
    if (waits) asking.value = asking.peek() + 1
    const waited = () => {
      if (waits) asking.value = asking.peek() - 1
      waits = false
    }
    let later: number | undefined
    const again = () => (later = setTimeout(() => turn.value++, pause))
    const read = async () => {
      const answer = await fetch(asks, { signal: given.signal })
      if (answer.ok) {
        value.value = (await answer.json()) as T
        wrong.value = ""
        return
      }
      wrong.value = await failureOf(answer)
      if (answer.status >= 500 || answer.status === 429) again()
    }
    read()
      .catch((e: Error) => {
        if (given.signal.aborted) return
        wrong.value = `It cannot be read: ${e.message}. It is tried again.`
        again()
      })
      .finally(waited)
    return () => {
      given.abort()
      waited()
      clearTimeout(later)
    }
  }, [asks, reader, !!moment || live, count, turn.value])
  return { value: value.value, wrong: wrong.value }
}
