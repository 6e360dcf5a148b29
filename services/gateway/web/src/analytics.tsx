// The page of a queue's figures by week, from the history.

import { useMemo } from "preact/hooks"
import { Notice, Reading } from "./frame"
import type { Analytics as Figures, WeekOfWaits } from "./openapi"
import { Plot, type Line } from "./plot"
import { QueuePage } from "./queuepage"
import { useRead } from "./read"
import { at, choose, flakesPath, query } from "./router"
import { Bar, seconds, WhatIf } from "./whatif"
import { Ago, exact, plain } from "./words"

const spans: [string, number][] = [
  ["4 weeks", 4],
  ["12 weeks", 12],
  ["26 weeks", 26],
  ["a year", 52],
  ["two years", 104],
]

export function Analytics({ queue }: { queue: string }) {
  return (
    <QueuePage title="Figures" queue={queue}>
      <Known queue={queue} />
      {at.value ? <p class="soft">What if? simulates the newest changes, so it is of the present alone.</p> : <WhatIf key={queue} queue={queue} />}
    </QueuePage>
  )
}

function Known({ queue }: { queue: string }) {
  const chosen = Number(query.value.get("weeks"))
  const weeks = spans.some(([, n]) => n === chosen) ? chosen : 12
  const { value, wrong } = useRead<Figures>(`/v1/queues/${encodeURIComponent(queue)}/analytics?weeks=${weeks}${at.value && `&at=${encodeURIComponent(at.value)}`}`)
  if (wrong)
    return (
      <p role="alert" class="wrong">
        {plain(wrong)}
      </p>
    )
  if (!value) return <Reading what="the history" />
  if (value.missing)
    return (
      <Notice title="There is no history">
        <p>{plain(value.missing.message)}</p>
        <p>{plain(value.missing.advice)}</p>
      </Notice>
    )
  return (
    <>
      <div class="line">
        <label>
          <span>The last </span>
          <select value={String(weeks)} onChange={(e) => choose({ weeks: e.currentTarget.value === "12" ? "" : e.currentTarget.value })}>
            {spans.map(([name, n]) => (
              <option key={n} value={String(n)}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <span class="soft">
          Weeks begin on Mondays, in UTC.{" "}
          {value.at ? (
            <>
              What had happened by <time dateTime={value.at}>{exact(value.at)}</time> is counted, as the history has it now.
            </>
          ) : (
            value.written && (
              <>
                The history was last written <Ago at={value.written} />.
              </>
            )
          )}
        </span>
        {value.weeks !== weeks || (value.at ? Date.parse(value.at) : 0) !== (at.value ? Date.parse(at.value) : 0) ? (
          <span role="status" class="soft">
            Asking the history…
          </span>
        ) : null}
      </div>
      <Shown of={value} />
    </>
  )
}

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" })
const x = (time: number) => day.format(time)

const incrs = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000, 86_400, 172_800, 432_000, 864_000]
const percent = (rate: number) => `${+(100 * rate).toFixed(1)} %`
const number = (n: number) => (+n.toPrecision(3)).toLocaleString()

const parts: [string, keyof WeekOfWaits, string][] = [
  ["until it was in the queue", "admission_s", "--hue7"],
  ["analysis", "analysis_s", "--hue5"],
  ["waiting for a worker", "worker_s", "--hue1"],
  ["building", "building_s", "--hue0"],
  ["behind others", "behind_s", "--hue3"],
  ["push", "push_s", "--hue2"],
]

// column is a list by week as what is drawn of it.
function column<T extends { week: string }>(list: T[], ...lines: [string, string, (of: T) => number | null, number[]?][]): { xs: number[]; lines: Line[] } {
  return { xs: list.map((w) => Date.parse(w.week)), lines: lines.map(([name, colour, value, dash]) => ({ name, colour, values: list.map(value), dash })) }
}

function Shown({ of }: { of: Figures }) {
  const drawn = useMemo(
    () => ({
      waits: column(of.waits, ["half landed within", "--accent", (w) => w.p50_s], ["95 of 100 within", "--held", (w) => w.p95_s, [6, 3]]),
      parts: column(of.waits, ...parts.map(([name, field, colour]): [string, string, (w: WeekOfWaits) => number] => [name, colour, (w) => w[field] as number])),
      builds: column(of.builds, ["builds of a change", "--accent", (w) => w.per_change]),
      work: column(of.work, ["worker hours of a change", "--accent", (w) => w.per_change]),
      bypasses: column(of.bypasses, ["landed before one ahead", "--accent", (w) => w.rate]),
      errors: column(
        of.predictions.filter((w) => w.changes > 0),
        ["Brier score", "--accent", (w) => w.brier],
        ["calibration error", "--held", (w) => w.calibration_error, [6, 3]],
      ),
      durations: column(
        of.predictions.filter((w) => w.durations > 0),
        ["mean error", "--accent", (w) => w.mean_error_s],
        ["mean duration", "--held", (w) => w.mean_s, [6, 3]],
      ),
      calibration: { xs: of.calibration.map((c) => c.predicted_rate), lines: [{ name: "landed", colour: "--accent", values: of.calibration.map((c) => c.landed_rate) }] },
    }),
    [of],
  )
  if (of.waits.length + of.builds.length + of.work.length + of.bypasses.length + of.predictions.length === 0)
    return (
      <Notice title="Nothing has left the queue in this time">
        {of.at ? <p>Choose a longer time, or a later moment.</p> : <p>Choose a longer time, or land a change: figures come once it has landed, within a minute.</p>}
      </Notice>
    )
  const by = { x, first: "week of" }
  return (
    <div class="plots">
      {of.waits.length > 0 && (
        <>
          <Plot {...by} {...drawn.waits} y={seconds} incrs={incrs} title="Time to land" more={[["landed", of.waits.map((w) => w.landed.toLocaleString())], ["mean", of.waits.map((w) => seconds(w.mean_s))]]}>
            <p class="soft">From asking for it until it is on the mainline.</p>
          </Plot>
          <Plot {...by} {...drawn.parts} y={seconds} incrs={incrs} title="What changes wait for" stacked more={[["together", of.waits.map((w) => seconds(w.mean_s))]]}>
            <p class="soft">The mean time to land, in its parts.</p>
          </Plot>
        </>
      )}
      {of.builds.length > 0 && <Plot {...by} {...drawn.builds} y={number} title="Builds of a change" more={[["changes", of.builds.map((w) => w.changes.toLocaleString())], ["builds", of.builds.map((w) => w.builds.toLocaleString())], ["aborted", of.builds.map((w) => w.aborted.toLocaleString())]]} />}
      {of.work.length > 0 && <Plot {...by} {...drawn.work} y={number} title="Worker hours of a change" more={[["changes", of.work.map((w) => w.changes.toLocaleString())], ["hours", of.work.map((w) => number(w.hours))]]} />}
      {of.bypasses.length > 0 && <Plot {...by} {...drawn.bypasses} y={percent} title="Bypasses" more={[["landed", of.bypasses.map((w) => w.landed.toLocaleString())], ["bypassing", of.bypasses.map((w) => w.bypassing.toLocaleString())]]} />}
      {drawn.errors.xs.length > 0 && (
        <Plot {...by} {...drawn.errors} y={number} title="Is it foreseen whether changes land?" more={[["changes", of.predictions.filter((w) => w.changes > 0).map((w) => w.changes.toLocaleString())]]}>
          <p class="soft">0 is right about each change; 0.25 is what one gets who always says one half.</p>
        </Plot>
      )}
      {drawn.calibration.xs.length > 0 && (
        <Plot {...drawn.calibration} x={percent} y={percent} first="predicted" square title="What was predicted comes true" more={[["changes", of.calibration.map((c) => c.changes.toLocaleString())]]}>
          <p class="soft">Share of changes that landed, by what was predicted of them. On the diagonal both are the same.</p>
        </Plot>
      )}
      {drawn.durations.xs.length > 0 && (
        <Plot
          {...by}
          {...drawn.durations}
          y={seconds}
          incrs={incrs}
          title="Is it foreseen how long builds take?"
          more={[
            ["builds of changes", of.predictions.filter((w) => w.durations > 0).map((w) => w.durations.toLocaleString())],
            ["within the 90 % interval", of.predictions.filter((w) => w.durations > 0).map((w) => percent(w.covered))],
          ]}
        />
      )}
      <section class="plot">
        <h2>Targets that rejected changes</h2>
        <p class="soft">In the time that is shown, those that rejected most changes first. A change that came again and was rejected again is one change. <a href={flakesPath(of.queue)}>Failing targets</a> has those of the changes that the queue keeps.</p>
        {of.rejections.length === 0 ? (
          <p class="soft">None did in this time.</p>
        ) : (
          <div class="wide" tabIndex={0} role="group" aria-label="Targets that rejected changes">
            <table class="facts">
              <Head of={["target", "changes", "rejections", "last", "owners"]} />
              <tbody>
                {of.rejections.map((r) => (
                  <tr key={r.target}>
                    <th scope="row">
                      <code>
                        <bdi>{plain(r.target)}</bdi>
                      </code>
                    </th>
                    <td>
                      <Bar of={r.changes} most={of.rejections[0]!.changes} says={r.changes.toLocaleString()} />
                    </td>
                    <td>{r.rejections.toLocaleString()}</td>
                    <td>
                      <time dateTime={r.last_at} title={exact(r.last_at)}>
                        {x(Date.parse(r.last_at))}
                      </time>
                    </td>
                    <td>{r.owners?.map(plain).join(", ") || "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section class="plot">
        <h2>Flaky targets of the whole history</h2>
        <p class="soft">
          The share is of all versions that ran. <a href={flakesPath(of.queue)}>Failing targets</a> counts from the first flake on, and older ones weigh less; it has what each costs, and quarantines.
        </p>
        {of.flaky.length === 0 ? (
          <p class="soft">No version of a target failed in one run and passed in another, in the whole history.</p>
        ) : (
          <div class="wide" tabIndex={0} role="group" aria-label="Flaky targets">
            <table class="facts">
              <Head of={["target", "flaky versions", "failing", "half took", "owners"]} />
              <tbody>
                {of.flaky.map((f) => (
                  <tr key={f.target}>
                    <th scope="row">
                      <code>
                        <bdi>{plain(f.target)}</bdi>
                      </code>
                    </th>
                    <td>
                      <Bar of={f.flake_rate} most={of.flaky[0]!.flake_rate} says={`${percent(f.flake_rate)} of ${f.versions.toLocaleString()}`} />
                    </td>
                    <td>{percent(f.failure_rate)}</td>
                    <td>{seconds(f.p50_s)}</td>
                    <td>{f.owners?.map(plain).join(", ") || "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </div>
  )
}

function Head({ of }: { of: string[] }) {
  return (
    <thead>
      <tr>
        {of.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  )
}
