// The page of dead letters: what could not be read or handled, why, and what to do.

import { Ask, send } from "./act"
import { Fold, Header, Notice, openDialog } from "./frame"
import type { DeadLetter, DeadLetterList } from "./openapi"
import { Connecting } from "./queues"
import { at, choose, query, queuePath } from "./router"
import { useRead } from "./read"
import { queues } from "./store"
import { Ago, exact, plain, plural } from "./words"

export function DeadLetters() {
  const { value, wrong } = useRead<DeadLetterList>("/v1/dead-letters", "list dead-letters")
  return (
    <>
      <Header />
      <main>
        <h1 tabIndex={-1}>Dead letters</h1>
        <p class="soft">Records that could not be read or handled. Their queues went on without them.</p>
        {wrong && (
          <p role="alert" class="wrong">
            {plain(wrong)}
          </p>
        )}
        {!queues.value ? <Connecting /> : !value ? !wrong && <p class="soft">Reading the dead letters…</p> : <Known of={value} />}
      </main>
    </>
  )
}

// none stands in the address for letters that name no queue.
const none = "none"

function Known({ of }: { of: DeadLetterList }) {
  const names = [...new Set(of.letters.map((l) => l.queue ?? none))].sort()
  const chosen = query.value.get("queue") ?? ""
  const shown = chosen ? of.letters.filter((l) => (l.queue ?? none) === chosen) : of.letters
  return (
    <>
      <div class="line">
        <span role="status">{plural(shown.length, "dead letter")}</span>
        {(names.length > 1 || chosen) && (
          <label>
            <span>Queue </span>
            <select value={chosen} onChange={(e) => choose({ queue: e.currentTarget.value })}>
              <option value="">all</option>
              {[...new Set([...names, ...(chosen ? [chosen] : [])])].map((name) => (
                <option key={name} value={name}>
                  {plain(name)}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {shown.length === 0 && (
        <Notice title="There are none">
          <p>Everything that was written to the log has been read and handled.</p>
        </Notice>
      )}
      <ul class="letters" aria-label="Dead letters, newest first">
        {shown.map((l) => (
          <Letter key={l.place} of={l} />
        ))}
      </ul>
      {!!of.older && (
        <p class="soft">
          {plural(of.older, "older one is", "older ones are")} in the log: <code>landfall dead-letters</code> lists all.
        </p>
      )}
    </>
  )
}

function Letter({ of }: { of: DeadLetter }) {
  const ask = () =>
    openDialog((close) => (
      <Ask
        title={`Send again: ${plain(of.change || of.place)}`}
        asks="The land request is published again, as its author wrote it. One that was handled meanwhile is not handled twice."
        button="Send again"
        close={close}
        send={(why) => send(`/v1/dead-letters/${of.place.split("/").map(encodeURIComponent).join("/")}/send`, why ? { why } : {})}
      />
    ))
  return (
    <li class="card">
      <h2>
        <bdi>{plain(of.reason)}</bdi>
      </h2>
      {of.advice && <p>{plain(of.advice)}</p>}
      <p class="line soft">
        <Ago at={of.at} />
        <span>
          reported by <bdi>{plain(of.service)}</bdi>
        </span>
        {of.queue && (
          <span>
            queue {queues.value && of.queue in queues.value ? <a href={queuePath(of.queue)}>{plain(of.queue)}</a> : <bdi>{plain(of.queue)}</bdi>}
          </span>
        )}
        {of.change && (
          <span>
            change <code>{plain(of.change)}</code>
          </span>
        )}
        {of.request_id && (
          <span>
            request <code>{plain(of.request_id)}</code>
          </span>
        )}
        <code>{plain(of.place)}</code>
      </p>
      {of.sent && (
        <p class="state held">
          ↺ sent again <Ago at={of.sent.at} /> by <bdi>{plain(of.sent.who || "somebody")}</bdi>
          {of.sent.why && (
            <>
              : <bdi>{plain(of.sent.why)}</bdi>
            </>
          )}
          {of.sent.times > 1 && `, ${of.sent.times} times`}
        </p>
      )}
      <div class="line">
        {of.may_send && !at.value && (
          <button type="button" aria-haspopup="dialog" onClick={ask}>
            Send again
          </button>
        )}
        {of.record && (
          <Fold class="record" name={of.place} summary="The record">
            <dl class="about">
              <div>
                <dt>when</dt>
                <dd>{exact(of.at)}</dd>
              </div>
              {of.type && <Bytes name="type" text={of.type} />}
              {of.record.key && <Bytes name="key" text={of.record.key} />}
              {of.record.headers?.map((h, i) => (
                <Bytes key={i} name={h.name} text={h.value} />
              ))}
            </dl>
            {of.record.value && (
              <pre tabIndex={0} aria-label="Value">
                {plain(of.record.value)}
              </pre>
            )}
          </Fold>
        )}
      </div>
    </li>
  )
}

function Bytes({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>
        <bdi>{plain(name)}</bdi>
      </dt>
      <dd>
        <code>
          <bdi>{plain(text)}</bdi>
        </code>
      </dd>
    </div>
  )
}
