// What is around each page about one thing of a queue.

import type { ComponentChildren } from "preact"
import { Header, Notice } from "./frame"
import { Connecting } from "./queues"
import { queues } from "./store"
import { plain } from "./words"

// QueuePage shows its children once the queues are known and it is one of them. Before that, and where it is none, it says so.
export function QueuePage({ title, queue, lead, children }: { title: string; queue: string; lead?: string; children: ComponentChildren }) {
  const known = queues.value
  return (
    <>
      <Header queue={queue} />
      <main>
        <h1 tabIndex={-1}>
          {title} of <bdi>{plain(queue)}</bdi>
        </h1>
        {lead && <p class="soft">{lead}</p>}
        {!known ? (
          <Connecting />
        ) : !(queue in known) ? (
          <Notice title="There is no such queue">
            <p>
              <a href="/">All queues</a>
            </p>
          </Notice>
        ) : (
          children
        )}
      </main>
    </>
  )
}
