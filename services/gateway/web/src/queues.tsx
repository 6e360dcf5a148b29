// The page of all queues.

import { Figures, Landings, Moving, Pauses, Troubles } from "./health"
import { Header, Notice, SignIn } from "./frame"
import type { Overview } from "./openapi"
import { queuePath } from "./router"
import { queues, status } from "./store"
import { plain } from "./words"

export function Queues() {
  const known = queues.value
  return (
    <>
      <Header />
      <main>
        <h1 tabIndex={-1}>Queues</h1>
        {!known ? (
          <Connecting />
        ) : Object.keys(known).length === 0 ? (
          <Notice title="No queue is configured">
            <p>
              Run <code>landfall init</code> in a clone: it writes <code>landfall.config.yaml</code>. Then start <code>landfall up</code> again.
            </p>
          </Notice>
        ) : (
          <ul class="cards">
            {Object.values(known)
              .sort((a, b) => a.queue.localeCompare(b.queue))
              .map((q) => (
                <Card key={q.queue} of={q} />
              ))}
          </ul>
        )}
      </main>
    </>
  )
}

function Card({ of }: { of: Overview }) {
  return (
    <li class="card">
      <div class="line">
        <h2>
          <a href={queuePath(of.queue)}>{of.queue}</a>
        </h2>
        <Moving of={of} />
        <span class="space" />
        {of.pace && <Landings of={of.pace} />}
      </div>
      <p class="soft">
        lands on <code>{plain(of.branch ?? "the mainline")}</code>
        {of.repository && (
          <>
            {" of "}
            <bdi>{plain(of.repository)}</bdi>
          </>
        )}
      </p>
      <Troubles of={of} />
      <Figures of={of} />
      <Pauses of={of} />
    </li>
  )
}

// Connecting is shown until the stream has begun.
export function Connecting() {
  const { why, refused } = status.value
  if (refused) return <SignIn />
  if (!why) return <p class="soft">Reading the queues…</p>
  return (
    <Notice title="The page cannot be filled yet">
      <p>{why}</p>
      <p class="soft">It tries again by itself.</p>
    </Notice>
  )
}
