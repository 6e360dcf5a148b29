// A change that is opened in its row.

import { useEffect } from "preact/hooks"
import { Actions } from "./act"
import { Failed, Futures, Landed, Waits } from "./facts"
import { Reading } from "./frame"
import { changePath } from "./router"
import { detailOf, watch } from "./store"
import { Eta, Sure } from "./words"

export function Opened({ queue, change }: { queue: string; change: string }) {
  useEffect(() => watch({ detail: `${queue}/${change}` }), [queue, change])
  const detail = detailOf(queue, change).value
  if (detail === undefined) return <Reading what="the change" />
  if (detail === null) return <p class="soft">The queue does not keep this change any more.</p>
  return (
    <>
      <div class="line">
        <Actions of={detail} />
        <a href={changePath(queue, change)}>Everything about it</a>
      </div>
      {detail.position && (
        <p>
          decided: <Eta of={detail} /> <Sure of={detail.eta} />
        </p>
      )}
      <Failed of={detail} />
      <Waits of={detail} />
      {!detail.landing && <Futures of={detail} />}
      <Landed of={detail} />
    </>
  )
}
