// The page of one change.

import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import { Actions } from "./act"
import { Failed, Futures, Landed, Said, Timeline, Waits } from "./facts"
import { Header, Notice, Reading } from "./frame"
import { Numbers } from "./numbers"
import type { Change as Detail } from "./openapi"
import { Progress } from "./progress"
import { Connecting } from "./queues"
import { Revisions } from "./revisions"
import { at, queuePath } from "./router"
import { detailOf, queues, watch } from "./store"
import { Times } from "./times"
import { Ago, Eta, plain, plural, shown, State, Sure, webLink } from "./words"

export function Change({ queue, id }: { queue: string; id: string }) {
  const known = queues.value
  const there = known !== undefined && queue in known
  useEffect(() => (there ? watch({ detail: `${queue}/${id}` }) : undefined), [queue, id, there])
  const detail = detailOf(queue, id).value
  return (
    <>
      <Header queue={queue} />
      <main>
        {detail ? (
          <Known of={detail} />
        ) : (
          <>
            <h1 tabIndex={-1}>
              <bdi>{plain(id)}</bdi>
            </h1>
            {!known ? (
              <Connecting />
            ) : !there ? (
              <Notice title="There is no such queue">
                <p>
                  <a href="/">All queues</a>
                </p>
              </Notice>
            ) : detail === null ? (
              <Notice title="The queue has no such change">
                <p>Changes that left the queue long ago are only in the history. {at.value ? "It may have been asked for after the moment that is shown." : "If it has just been asked for, it appears here by itself."}</p>
                <p>
                  <a href={queuePath(queue)}>The queue {queue}</a>
                </p>
              </Notice>
            ) : (
              <Reading what="the change" />
            )}
          </>
        )}
      </main>
    </>
  )
}

function Known({ of }: { of: Detail }) {
  const link = webLink(of.uri)
  return (
    <>
      <h1 tabIndex={-1}>
        <bdi>{plain(of.title || of.change)}</bdi>
      </h1>
      <p class="line soft">
        {of.author && (
          <span>
            by <bdi>{plain(of.author)}</bdi>
          </span>
        )}
        <code>{plain(of.change)}</code>
        {of.revision > 1 && <span>revision {of.revision}</span>}
        <span>
          asked for <Ago at={of.admitted_at} />
        </span>
        {link && (
          <a href={link} rel="noopener noreferrer" target="_blank">
            at its host
          </a>
        )}
      </p>
      <div class="line standing">
        <State name={shown(of)} />
        {of.held && <span class="state held">‖ held</span>}
        {of.urgent && <span class="state urgent">↑ front</span>}
        {of.position && <span>{of.position === 1 ? "first in the queue" : `place ${of.position} in the queue`}</span>}
        {of.position && (
          <span>
            decided: <Eta of={of} /> <Sure of={of.eta} />
          </span>
        )}
        {of.steps_total > 0 && <Progress done={of.steps_done} total={of.steps_total} />}
        {of.finished_at && <Ago at={of.finished_at} />}
        <span class="space" />
        <Actions of={of} />
      </div>
      <p class="sentence">
        <Said of={of} text={of.why} />
      </p>
      <div class="columns">
        <div>
          <Failed of={of} />
          <Waits of={of} />
          <Landed of={of} />
          <Times of={of} />
          <Futures of={of} />
          <Numbers key={of.change} of={of} />
        </div>
        <div>
          <Timeline of={of} />
          <About of={of} />
          <Revisions key={of.change} of={of} />
        </div>
      </div>
    </>
  )
}

function About({ of }: { of: Detail }) {
  const a = of.analysis
  return (
    <section>
      <h2>What it is</h2>
      <dl class="about">
        {of.description && <Row name="description" value={<span class="description">{plain(of.description)}</span>} />}
        <Row
          name="commits"
          value={of.entries.map((e) => (
            <span key={e.commit + e.ref}>
              {e.ref && <bdi>{plain(e.ref)} </bdi>}
              <code title={e.commit}>{e.commit.slice(0, 12)}</code>{" "}
            </span>
          ))}
        />
        {of.team && <Row name="team" value={<bdi>{plain(of.team)}</bdi>} />}
        {of.requires && <Row name="requires" value={of.requires.map((r) => `${plain(r.change)} (${r.state})`).join(", ")} />}
        {a && <Row name="size" value={`${plural(a.files_changed, "file")}, +${a.lines_added} −${a.lines_deleted}`} />}
        {a && <Row name="affects" value={a.everything ? "everything" : `${plural(a.targets_total, "target")}${a.targets ? `: ${a.targets.slice(0, 12).map(plain).join(", ")}${a.targets_total > 12 ? ", …" : ""}` : ""}`} />}
      </dl>
    </section>
  )
}

function Row({ name, value }: { name: string; value: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}
