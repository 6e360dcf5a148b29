// The numbers behind a change: what is predicted of it and by what, and the factors by which its builds are ranked. They are worked out
// when the reader asks.

import type { ComponentChildren } from "preact"
import { Fold, Wide } from "./frame"
import type { BuildReasons, Change, Explanation, Factor, Full, Term, Verdict, Worth } from "./openapi"
import { useRead } from "./read"
import { at } from "./router"
import { Ago, duration, plain, plural, sentence, State } from "./words"

// mostBuilds is how many builds are shown, the newest first.
const mostBuilds = 12

// Exact is a number in three digits, with all of them on hover.
function Exact({ of }: { of: number }) {
  return <span title={String(of)}>{(+of.toPrecision(3)).toLocaleString(undefined, { maximumSignificantDigits: 3 })}</span>
}

const percent = (p: number) => <span title={String(p)}>{+(100 * p).toPrecision(3)} %</span>

// sources are what predicts without a model; else it is a model, by its name and version.
const sources: Record<string, string> = {
  evidence: "what builds have shown",
  marginal: "worked out of the others",
  rule: "a rule",
  several: "several together",
  prior: "a prior",
  queue: "a prior, and the queue's last changes",
  targets: "the last runs of its targets",
  "merge conflict": "they do not merge",
  "built green with it": "a build that was green with it",
}

// built is appended to the name of what predicted, once builds of the change have moved the prediction.
const built = ", and its builds"

function Source({ of }: { of: string }) {
  const by = of.endsWith(built) ? of.slice(0, -built.length) : of
  return (
    <>
      {sources[by] ?? (
        <>
          model <code>{plain(by)}</code>
        </>
      )}
      {by !== of && built}
    </>
  )
}

export function Numbers({ of }: { of: Change }) {
  if (at.value) return <p class="soft">What was predicted of it then, and how its builds were ranked, is not shown of the past.</p>
  return (
    <section>
      <Fold
        name={`numbers of ${of.change}`}
        summary={
          <>
            <h2>Its numbers</h2>
            <span class="soft">what is predicted, and how its builds are ranked</span>
          </>
        }
      >
        {() => <Read of={of} />}
      </Fold>
    </section>
  )
}

function Read({ of }: { of: Change }) {
  const { value, wrong } = useRead<Explanation>(`/v1/queues/${encodeURIComponent(of.queue)}/changes/${encodeURIComponent(of.change)}/explain?full=true`)
  if (wrong)
    return (
      <p role="alert" class="wrong">
        {plain(wrong)}
      </p>
    )
  if (!value?.full) return <p class="soft">Working out the numbers…</p>
  return <Shown of={value.full} />
}

function Shown({ of }: { of: Full }) {
  const p = of.prediction
  const builds = [...of.builds].reverse()
  return (
    <div class="numbers">
      <p class="soft">
        As of <Ago at={of.at} />. Numbers choose what is built first; no landing or rejection rests on one.
      </p>
      {p && (
        <Wide name="What is predicted of it" heads={["predicted", "is", "by"]}>
          <tr>
            <th scope="row">it passes by itself</th>
            <td>{percent(p.success)}</td>
            <td>
              <Source of={p.success_from} />
            </td>
          </tr>
          <tr>
            <th scope="row">its builds take</th>
            <td>
              {duration(p.duration_mean)} ± {duration(p.duration_std)}
            </td>
            <td>
              <Source of={p.duration_from} />
            </td>
          </tr>
          <tr>
            <th scope="row">it lands</th>
            <td>{percent(p.lands)}</td>
            <td>
              <Source of="marginal" />
            </td>
          </tr>
        </Wide>
      )}
      {of.verdict && <Rules name="By the rules, now" of={of.verdict} />}
      {of.ranked.map((r) => (
        <Product key={r.rank} fold={`rank ${r.rank}`} name={`Rank ${r.rank} of the queue's builds${r.build ? ", running" : ""}`} of={r.worth} open={of.ranked.length === 1}>
          {!r.worth && <p class="soft">It is no longer one of its paths.</p>}
        </Product>
      ))}
      {builds.slice(0, mostBuilds).map((b) => (
        <Built key={b.build} of={b} />
      ))}
      {builds.length > mostBuilds && <p class="soft">and {plural(builds.length - mostBuilds, "older build")}</p>}
      {of.decisions.map((d) => d.then && <Rules key={d.position} name={`When it was decided that it is ${d.decision}`} of={d.then} />)}
      {of.omitted && <p class="soft">{plain(of.omitted)}</p>}
    </div>
  )
}

function Assumes({ of }: { of: string[] }) {
  return of.length === 0 ? <>on the mainline alone</> : <bdi>on top of {of.map(plain).join(", ")}</bdi>
}

function Rules({ name, of }: { name: string; of: Verdict }) {
  return (
    <>
      <p>
        {name}: <strong>{of.decision}</strong>, because <bdi>{plain(of.why)}</bdi>.
      </p>
      {of.paths.length > 0 && (
        <ul class="reasons">
          {of.paths.map((p) => (
            <li key={p.assumed.join()}>
              <State name={p.state} /> <Assumes of={p.assumed} />
              {p.outstanding && `; to be verified: ${p.outstanding.map(plain).join(", ")}${p.more ? ` and ${p.more} more` : ""}, ${p.covered ? "which running builds do" : "which not all running builds do"}`}
              {p.message && `: ${plain(p.message)}`}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function Built({ of }: { of: BuildReasons }) {
  return (
    <Fold
      name={`numbers ${of.build}`}
      summary={
        <>
          <State name={of.state} />
          <span>
            Build <code>{of.build.slice(0, 8)}</code>: value <Exact of={of.value} /> when it was scheduled
          </span>
        </>
      }
    >
      {of.why && <p class="soft">{plain(sentence(of.why))}</p>}
      {of.message && <p class="soft">{plain(sentence(of.message))}</p>}
      <Product fold={`then ${of.build}`} name="Then" of={of.then} open />
      <Product fold={`now ${of.build}`} name="Now" of={of.now} open={!of.then} />
    </Fold>
  )
}

// Product is the worth of a build, with what it is made of.
function Product({ fold, name, of, open, children }: { fold: string; name: string; of?: Worth; open: boolean; children?: ComponentChildren }) {
  if (!of && !children) return null
  return (
    <Fold
      name={fold}
      open={open}
      summary={
        <span>
          {name}
          {of && (
            <>
              , <Assumes of={of.assumed} />: value <Exact of={of.value} />
            </>
          )}
        </span>
      }
    >
      {children}
      {of && (
        <p>
          {of.rule ? (
            plain(sentence(of.rule))
          ) : (
            <>
              Value = benefit <Exact of={of.benefit} /> · <Exact of={of.soon} /> for what it has ahead · {percent(of.likely)} that the path comes about. It is needed with {percent(of.needed)}
              {of.assumed.length + of.rejected.length > 0 && <>; a build starts from {percent(of.threshold)} on</>}.
            </>
          )}
        </p>
      )}
      {of && of.factors.length > 0 && (
        <Wide name={`${name}: factors`} heads={["change", "is assumed to", "probability", "ends first", "factor", "because"]}>
          {of.factors.map((f, i) => (
            <Factors key={i} of={f} />
          ))}
        </Wide>
      )}
    </Fold>
  )
}

function Factors({ of }: { of: Factor }) {
  return (
    <tr>
      <th scope="row">{of.change ? <bdi>{plain(of.change)}</bdi> : plural(of.others ?? 0, "other")}</th>
      <td>{of.assumed === "lands" ? "land" : of.assumed === "rejected" ? "be rejected" : ""}</td>
      <td>{percent(of.probability)}</td>
      <td>{percent(of.finishes_first)}</td>
      <td>
        <Exact of={of.factor} />
      </td>
      <td>{of.terms && <Terms of={of.terms} />}</td>
    </tr>
  )
}

function Terms({ of }: { of: Term[] }) {
  return (
    <ul class="terms">
      {of.map((t, i) => (
        <li key={i}>
          <Exact of={t.value} />: <bdi>{plain(t.says)}</bdi> (<Source of={t.from} />)
          {t.of && <Terms of={t.of} />}
        </li>
      ))}
    </ul>
  )
}
