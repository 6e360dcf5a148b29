// How a queue is: what keeps it from landing, and how fast it lands.

import { Fold } from "./frame"
import type { Overview, Pace, PauseOver } from "./openapi"
import { changePath } from "./router"
import { Ago, duration, exact, now, plain, plural, sentence, useNow } from "./words"

// troubles are the sentences of what keeps a queue from landing, the worst first.
export function troubles(q: Overview): string[] {
  const out: string[] = []
  for (const s of q.service_troubles ?? []) out.push(s.sentence)
  if (q.mainline_unreachable) out.push(q.mainline_unreachable.sentence)
  if (q.paused_by_remote) out.push(q.paused_by_remote.sentence)
  if (q.paused) out.push(`Paused by ${q.paused.who || "somebody"}${q.paused.since ? ` since ${exact(q.paused.since)}` : ""}${q.paused.why ? `: ${q.paused.why}` : ""}. Builds go on, nothing lands.`)
  if (q.mainline_red?.length) out.push(`The mainline is red in ${q.mainline_red.slice(0, 3).join(", ")}${q.mainline_red.length > 3 ? " and others" : ""}. Changes that meet it there wait.`)
  return out.map(plain)
}

export function Troubles({ of }: { of: Overview }) {
  const list = troubles(of)
  if (list.length === 0) return null
  return (
    <div role="alert">
      <ul class="troubles">
        {list.map((t) => (
          <li key={t}>{t}</li>
        ))}
      </ul>
    </div>
  )
}

// Pauses are those that were over within a day, the last one first.
export function Pauses({ of }: { of: Overview }) {
  const [last, ...earlier] = [...(of.last_pause ? [of.last_pause] : []), ...(of.earlier_pauses ?? [])].filter((p) => now.value - Date.parse(p.until) <= 86_400_000)
  if (!last) return null
  return (
    <div class="soft pauses">
      <p>
        <bdi>{paused(of.paused ? "paused before" : "last paused", last)}</bdi>
      </p>
      {earlier.length > 0 && (
        <Fold name={`pauses of ${of.queue}`} summary={plural(earlier.length, "earlier pause")}>
          <ul>
            {earlier.map((p) => (
              <li key={p.until}>
                <bdi>{paused("paused", p)}</bdi>
              </li>
            ))}
          </ul>
        </Fold>
      )}
    </div>
  )
}

const paused = (when: string, p: PauseOver) => plain(sentence(`${when} ${p.since ? `from ${exact(p.since)} to` : "until"} ${exact(p.until)} by ${p.who || "somebody"}${p.why ? `: ${p.why}` : ""}; resumed by ${p.resumed_by || "somebody"}${p.resumed_why ? `: ${p.resumed_why}` : ""}`))

export function Moving({ of }: { of: Overview }) {
  const stopped = of.paused || of.paused_by_remote || of.mainline_unreachable || of.service_troubles?.length
  if (of.paused) return <span class="state held">‖ paused</span>
  if (stopped) return <span class="state rejected">▲ stopped</span>
  if (of.shadow)
    return (
      <span class="state waiting" title="It decides what others land on the mainline, and pushes nothing.">
        ◌ shadow
      </span>
    )
  if (of.pending === 0) return <span class="state waiting">○ idle</span>
  if (of.mainline_red?.length) return <span class="state rejected">▲ mainline red{of.testing + of.passed > 0 && ", others move"}</span>
  return <span class="state passed">● moving</span>
}

// landedToday counts since midnight where the reader is.
export function landedToday(p: Pace): number {
  const midnight = new Date(now.value).setHours(0, 0, 0, 0)
  const first = Math.ceil((midnight - Date.parse(p.since)) / 600_000)
  return p.landed.slice(Math.max(0, first)).reduce((sum, n) => sum + n, 0)
}

export function Figures({ of }: { of: Overview }) {
  const pace = of.pace
  return (
    <dl class="figures">
      <Figure name="in the queue" value={of.pending.toLocaleString()} title={`${of.waiting} waiting, ${of.testing} testing, ${of.passed} passed`} />
      {pace && <Figure name="landed today" value={landedToday(pace).toLocaleString()} />}
      {pace && pace.waits >= 2 && <Figure name={`P50 of ${pace.waits.toLocaleString()}`} value={duration(pace.wait_p50_s)} title="Half of the changes that landed in the last four hours did so within this time." />}
      {pace && pace.waits >= 20 && <Figure name={`P95 of ${pace.waits.toLocaleString()}`} value={duration(pace.wait_p95_s)} title="95 of 100 changes that landed in the last four hours did so within this time." />}
      {of.pool ? (
        <Figure name="workers" value={`${of.pool.busy_workers} of ${of.pool.workers}`} title={`${plural(of.pool.running_steps, "step")} running, ${of.pool.open_steps} open, in the pool ${of.pool.name}`} />
      ) : of.workers > 0 && (
        <Figure name="builds" value={`${of.running_builds} of ${of.workers}`} />
      )}
      {of.mainline_unproven ? <Figure name="of the mainline" value={`${of.mainline_unproven.toLocaleString()} to prove`} title="Targets that the mainline had before the queue, and that nothing has proven yet. Workers prove them while they are idle." /> : null}
      {pace?.last_landed_at && (
        <div class="last">
          <dt>last landing</dt>
          <dd>
            <Ago at={pace.last_landed_at} />
            {pace.last_landed && (
              <a href={changePath(of.queue, pace.last_landed.change)}>
                “<bdi>{plain(pace.last_landed.title || pace.last_landed.change)}</bdi>”
              </a>
            )}
          </dd>
        </div>
      )}
    </dl>
  )
}

function Figure({ name, value, title }: { name: string; value: string; title?: string }) {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

const bars = 24
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" })

// Landings is a bar for each ten minutes of the last four hours.
export function Landings({ of }: { of: Pace }) {
  const last = useNow((now) => Math.floor((now - Date.parse(of.since)) / 600_000), [of.since])
  const counts = Array.from({ length: bars }, (_, i) => of.landed[last - bars + 1 + i] ?? 0)
  const most = Math.max(4, ...counts)
  const time = (i: number) => clock.format(Date.parse(of.since) + i * 600_000)
  const sum = counts.reduce((a, b) => a + b, 0)
  return (
    <svg class="landings" viewBox={`0 0 ${bars * 6} 24`} role="img" aria-label={`${plural(sum, "change")} landed in the last four hours, ${counts[bars - 1]} since ${time(last)}.`}>
      {counts.map((n, i) => (
        <rect key={i} x={i * 6} width={5} y={n ? 23 - (22 * n) / most : 23} height={n ? (22 * n) / most + 1 : 1} class={n ? "some" : "none"}>
          <title>{`${n} landed ${i === bars - 1 ? `since ${time(last)}` : `from ${time(last - bars + 1 + i)} to ${time(last - bars + 2 + i)}`}`}</title>
        </rect>
      ))}
    </svg>
  )
}
