// The page of a queue's models: what predicts, what was trained, and how good each is.

import { Ask, send } from "./act"
import { openDialog, Reading } from "./frame"
import { useMay } from "./me"
import type { ModelCard, ModelEntry, ModelList } from "./openapi"
import { QueuePage } from "./queuepage"
import { useRead } from "./read"
import { Ago, exact, plain, plural } from "./words"

export function Models({ queue }: { queue: string }) {
  return (
    <QueuePage title="Models" queue={queue} lead="Predictions only choose what is built first. No landing or rejection rests on one.">
      <Known queue={queue} />
    </QueuePage>
  )
}

interface Asked {
  title: string
  asks: string
  button: string
  does: "promote" | "rollback"
  body: Record<string, unknown>
}

// kinds are what is predicted, and by what where no model is in use.
const kinds: Record<string, string> = { success: "whether a change passes", conflict: "whether two changes break each other", duration: "how long builds take" }

const short = (version: string | undefined) => plain((version ?? "").slice(0, 12))

function Known({ queue }: { queue: string }) {
  const path = `/v1/queues/${encodeURIComponent(queue)}/models`
  const { value, wrong } = useRead<ModelList>(path, `models ${queue}`)
  const may = useMay(queue)
  const ask = ({ does, body, ...of }: Asked) => openDialog((close) => <Ask {...of} close={close} send={(why) => send(`${path}/${does}`, { ...body, ...(why && { why }) })} />)
  if (wrong)
    return (
      <p role="alert" class="wrong">
        {plain(wrong)}
      </p>
    )
  if (!value) return <Reading what="the models" />
  const acts = may?.("models").allowed
  return (
    <>
      {Object.entries(kinds).map(([kind, predicts]) => {
        const of = value.models.filter((m) => m.kind === kind)
        const used = of.find((m) => m.in_use)
        return (
          <section key={kind}>
            <h2>
              {kind}: {predicts}
            </h2>
            <div class="line">
              {used ? (
                <span class="state passed">
                  ● {short(used.version)} predicts, chosen <Ago at={used.at} />
                </span>
              ) : (
                <>
                  <span class="state waiting">○ priors predict</span>
                  <span class="soft">what the configuration states, moved by what the queue has seen; the trainer makes a model once there is enough to learn from</span>
                </>
              )}
              {acts && used && (
                <>
                  <button type="button" aria-haspopup="dialog" onClick={() => ask({ title: `Roll back ${kind}`, asks: `The model that was in use before ${short(used.version)} predicts again, or priors where there was none.`, button: "Roll back", does: "rollback", body: { kind } })}>
                    Roll back
                  </button>
                  <button type="button" aria-haspopup="dialog" onClick={() => ask({ title: `Priors for ${kind}`, asks: `Nothing learned predicts any more until a model is put into use. The trainer waits a week before it trains another.`, button: "Use priors", does: "rollback", body: { kind, priors: true } })}>
                    Use priors
                  </button>
                </>
              )}
            </div>
            {of.length > 0 && (
              <ul class="letters" aria-label={`Models of ${kind}, newest first`}>
                {of.map((m) => (
                  <Entry
                    key={`${m.at} ${m.version} ${m.what}`}
                    of={m}
                    use={acts && m.usable && m.version !== used?.version ? () => ask({ title: `Use ${short(m.version)}`, asks: "It predicts from the next record on.", button: "Use it", does: "promote", body: { version: m.version } }) : undefined}
                  />
                ))}
              </ul>
            )}
          </section>
        )
      })}
      {!!value.omitted && (
        <p class="soft">
          {plural(value.omitted, "older one is", "older ones are")} in the log: <code>landfall models list</code> lists all.
        </p>
      )}
    </>
  )
}

function Entry({ of, use }: { of: ModelEntry; use?: () => void }) {
  return (
    <li class="card">
      <p class="line">
        {of.in_use ? <strong class="state passed">● in use</strong> : <span>{of.what}</span>}
        <code title={of.version}>{short(of.version)}</code>
        <span class="soft">
          <Ago at={of.at} />
          {of.who && (
            <>
              {" by "}
              <bdi>{plain(of.who)}</bdi>
            </>
          )}
          {of.why && (
            <>
              : <bdi>{plain(of.why)}</bdi>
            </>
          )}
        </span>
        {of.trouble && <span class="wrong">{plain(of.trouble)}</span>}
        {use && (
          <button type="button" aria-haspopup="dialog" aria-label={`Use it: ${short(of.version)}`} onClick={use}>
            Use it
          </button>
        )}
      </p>
      {of.card && <Card of={of.card} />}
    </li>
  )
}

function Card({ of }: { of: ModelCard }) {
  const columns = [...new Set((of.figures ?? []).map((f) => f.of))]
  const rows = [...new Set((of.figures ?? []).map((f) => f.name))]
  return (
    <>
      <p class="soft">
        {of.algorithm && <bdi>{plain(of.algorithm)}; </bdi>}
        {of.training_rows > 0 && (
          <>
            trained on {plural(of.training_rows, "row")} from {exact(of.data_from)} to {exact(of.data_until)}, judged on the newest {of.newest_rows.toLocaleString()}
            {of.verdict && ". "}
          </>
        )}
        {of.verdict && <bdi>{plain(of.verdict)}</bdi>}
      </p>
      {rows.length > 0 && (
        <div class="wide" tabIndex={0} role="group" aria-label="Figures">
          <table class="facts">
            <thead>
              <tr>
                <th scope="col">figure</th>
                {columns.map((c) => (
                  <th key={c} scope="col">
                    <bdi>{plain(c.replaceAll("_", " "))}</bdi>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((name) => (
                <tr key={name}>
                  <td>
                    <bdi>{plain(name.replaceAll("_", " "))}</bdi>
                  </td>
                  {columns.map((c) => {
                    const f = of.figures!.find((x) => x.name === name && x.of === c)
                    return <td key={c}>{f ? f.value.toFixed(4) : "–"}</td>
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}
