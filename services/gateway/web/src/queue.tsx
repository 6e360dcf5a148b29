// The page of one queue: its table.

import { useComputed, useSignal, type Signal } from "@preact/signals"
import { useEffect, useMemo, useRef } from "preact/hooks"
import { mostPicked, Pausing, Several } from "./act"
import { Linked, MainlineFails } from "./facts"
import { QueueGraph } from "./graph"
import { Header, Notice, Reading, typing } from "./frame"
import { Figures, Landings, Moving, Pauses, Troubles } from "./health"
import { isMine, me, useMay } from "./me"
import type { Overview, Summary } from "./openapi"
import { Connecting } from "./queues"
import { Progress } from "./progress"
import { at, changePath, choose, go, query } from "./router"
import { Opened } from "./opened"
import { final, queues, tableOf, watch, type Table } from "./store"
import { Ago, Eta, plain, plural, shown, State } from "./words"

// shownAtOnce is how many rows are made at first; more are when the reader comes near the end.
const shownAtOnce = 100

// shownOf is how many were made of each queue, for a reader who comes back.
const shownOf = new Map<string, number>()

const filters: [string, string][] = [
  ["", "all"],
  ["pending", "pending"],
  ["testing", "testing"],
  ["passed", "passed"],
  ["landed", "landed"],
  ["failed", "failed"],
]

export function Queue({ name }: { name: string }) {
  const overview = queues.value?.[name]
  return (
    <>
      <Header queue={name} />
      <main>
        {!queues.value ? (
          <>
            <h1 tabIndex={-1}>{name}</h1>
            <Connecting />
          </>
        ) : !overview ? (
          <>
            <h1 tabIndex={-1}>{name}</h1>
            <Notice title="There is no such queue">
              <p>
                <a href="/">All queues</a>
              </p>
            </Notice>
          </>
        ) : (
          <Known of={overview} />
        )}
      </main>
    </>
  )
}

function Known({ of }: { of: Overview }) {
  useEffect(() => watch({ changes: of.queue }), [of.queue])
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => e.key === "Escape" && !typing(e) && choose({ open: "", log: "", in: "", line: "" })
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [])
  const table = tableOf(of.queue)
  return (
    <>
      <div class="line">
        <h1 tabIndex={-1}>{of.queue}</h1>
        <Moving of={of} />
        <span class="space" />
        {of.pace && <Landings of={of.pace} />}
        <Pausing of={of} />
      </div>
      <Troubles of={of} />
      <MainlineFails of={of} />
      <Figures of={of} />
      <Pauses of={of} />
      <Filters table={table} />
      {query.value.get("view") === "graph" ? <AsGraph of={of} /> : <Rows of={of} table={table} />}
    </>
  )
}

// AsGraph is the graph, with the change that is opened below it.
function AsGraph({ of }: { of: Overview }) {
  const open = query.value.get("open")
  const graph = useMemo(() => <QueueGraph queue={of.queue} />, [of.queue])
  return (
    <>
      {graph}
      {open && (
        <section class="below" aria-label={`The change ${plain(open)}`}>
          <Opened queue={of.queue} change={open} />
        </section>
      )}
    </>
  )
}

function Filters({ table }: { table: Table }) {
  const search = useRef<HTMLInputElement>(null)
  const state = query.value.get("state") ?? ""
  const author = query.value.get("author") ?? ""
  const team = query.value.get("team") ?? ""
  // The names are joined, so that rows which move do not draw the filters again.
  const named = useComputed(() => JSON.stringify([...new Set((table.order.value ?? []).map((id) => table.rows.get(id)!.value.team ?? ""))].filter((name) => name !== "").sort())).value
  const teams = [...new Set([...(JSON.parse(named) as string[]), ...(team ? [team] : [])])]
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.key === "/" && !typing(e)) {
        e.preventDefault()
        search.current?.focus()
      } else if (e.key === "g" && !typing(e)) choose({ view: query.value.get("view") === "graph" ? "" : "graph" })
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [])
  const graph = query.value.get("view") === "graph"
  return (
    <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
      <fieldset>
        <legend class="unseen">Shown as</legend>
        {["table", "graph"].map((name) => (
          <label key={name} class="choice">
            <input type="radio" name="view" checked={graph === (name === "graph")} onChange={() => choose({ view: name === "graph" ? "graph" : "" })} />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>
      {!graph && <input ref={search} type="search" aria-label="Search titles, authors, changes and reasons" placeholder="search" value={query.value.get("q") ?? ""} onInput={(e) => choose({ q: e.currentTarget.value })} />}
      {!graph && <fieldset>
        <legend class="unseen">State</legend>
        {filters.map(([value, name]) => (
          <label key={name} class="choice">
            <input type="radio" name="state" checked={state === value} onChange={() => choose({ state: value })} />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>}
      {!graph && <label class="choice" title={me.value ? `Changes of ${me.value}` : "Enter your name at the top first"}>
        <input type="checkbox" checked={author !== ""} disabled={!me.value && author === ""} onChange={() => choose({ author: author ? "" : me.value })} />
        <span>{author && author !== me.value ? plain(author) : "mine"}</span>
      </label>}
      {!graph && teams.length > 0 && (
        <label>
          <span class="unseen">Team</span>
          <select value={team} onChange={(e) => choose({ team: e.currentTarget.value })}>
            <option value="">all teams</option>
            {teams.map((name) => (
              <option key={name} value={name}>
                {plain(name)}
              </option>
            ))}
          </select>
        </label>
      )}
    </form>
  )
}

function chosen(s: Summary, q: string, state: string, author: string, team: string): boolean {
  if (author && !isMine(s.author, author)) return false
  if (team && s.team !== team) return false
  if (q && !`${s.title ?? ""}\n${s.author ?? ""}\n${s.change}\n${s.why}`.toLowerCase().includes(q)) return false
  switch (state) {
    case "":
      return true
    case "pending":
      return !final(s.state)
    case "failed":
      return s.state === "rejected" || s.state === "ejected" || s.state === "dropped"
    default:
      return s.state === state
  }
}

// pick picks a change or takes it back.
function pick(change: string) {
  const picked = query.value.getAll("pick")
  choose({ pick: picked.includes(change) ? picked.filter((id) => id !== change) : [...picked, change].slice(0, mostPicked) })
}

function Rows({ of, table }: { of: Overview; table: Table }) {
  const may = useMay(of.queue)
  const steers = !!may && (["hold", "move", "cancel", "retry"] as const).some((verb) => may(verb).allowed)
  const most = useSignal(shownOf.get(of.queue) ?? shownAtOnce)
  const body = useRef<HTMLTableSectionElement>(null)
  const filtered = useComputed(() => {
    const q = (query.value.get("q") ?? "").trim().toLowerCase()
    const state = query.value.get("state") ?? ""
    const author = query.value.get("author") ?? ""
    const order = table.order.value
    if (!order) return undefined
    const team = query.value.get("team") ?? ""
    if (!q && !state && !author && !team) return order
    return order.filter((id) => chosen(table.rows.get(id)!.value, q, state, author, team))
  })
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (typing(e) || !body.current) return
      const rows = [...body.current.querySelectorAll<HTMLButtonElement>("button.open")]
      const at = rows.indexOf(document.activeElement as HTMLButtonElement)
      if (e.key === "j") (rows[at + 1] ?? rows[0])?.focus()
      else if (e.key === "k") (rows[at - 1] ?? rows.at(-1))?.focus()
      else if (e.key === "x" && at >= 0 && steers && table.rows.get(rows[at]!.dataset.change!)?.value.state !== "landed") pick(rows[at]!.dataset.change!)
      else if (e.key === "o" && at >= 0) go(changePath(of.queue, rows[at]!.dataset.change!))
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [of.queue, steers])
  const ids = filtered.value
  // Each row draws itself when its change does something. What the queue says of itself draws none of them again.
  const rows = useMemo(() => ids?.slice(0, most.value).map((id) => <Row key={id} of={table.rows.get(id)!} table={table} steers={steers} />), [ids, most.value, table, steers])
  if (!ids) return <Reading what="the changes" />
  if (ids.length === 0) {
    return table.rows.size === 0 ? (
      <Empty of={of} />
    ) : (
      <Notice title="No change matches">
        <p>
          <button type="button" onClick={() => choose({ q: "", state: "", author: "", team: "" })}>
            Show all {plural(table.rows.size, "change")}
          </button>
        </p>
      </Notice>
    )
  }
  const wanted = new Set(steers ? query.value.getAll("pick") : [])
  const picked = wanted.size === 0 ? [] : table.order.value!.filter((id) => wanted.has(id)).map((id) => table.rows.get(id)!.value)
  return (
    <>
      {picked.length > 0 && <Several queue={of.queue} picked={picked} shown={ids} may={may!} />}
      <table class={steers ? "changes steered" : "changes"} role="table">
        <caption class="unseen">Changes of {of.queue}, in queue order; then those that left, newest first</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col" class="number">
              #
            </th>
            <th role="columnheader" scope="col">
              Change
            </th>
            <th role="columnheader" scope="col">
              State
            </th>
            <th role="columnheader" scope="col" class="number">
              Steps
            </th>
            <th role="columnheader" scope="col">
              Decided
            </th>
            <th role="columnheader" scope="col">
              Why
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup" ref={body}>
          {rows}
        </tbody>
      </table>
      {ids.length > most.value && <More left={ids.length - most.value} show={() => shownOf.set(of.queue, (most.value += shownAtOnce))} />}
    </>
  )
}

// More shows further rows when it comes into sight.
function More({ left, show }: { left: number; show: () => void }) {
  const ref = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && show(), { rootMargin: "600px" })
    seen.observe(ref.current!)
    return () => seen.disconnect()
  })
  return (
    <button ref={ref} type="button" onClick={show}>
      {left.toLocaleString()} more
    </button>
  )
}

function Row({ of, table, steers }: { of: Signal<Summary>; table: Table; steers: boolean }) {
  const s = of.value
  const open = query.value.get("open") === s.change
  const panel = `open-${s.queue}-${s.change}`
  const mine = isMine(s.author, me.value)
  return (
    <>
      <tr role="row" class={`row${open ? " opened" : ""}${mine ? " mine" : ""}${final(s.state) ? " left" : ""}`} onClick={(e) => toggle(e, s.change, open)}>
        <td role="cell" class="number position">
          {steers && s.state !== "landed" && <input type="checkbox" aria-label={`Pick ${plain(s.title || s.change)}`} checked={query.value.getAll("pick").includes(s.change)} onChange={() => pick(s.change)} />}
          {s.position ?? ""}
        </td>
        <td role="cell" class="what">
          <button type="button" class="open" data-change={s.change} aria-expanded={open} aria-controls={open ? panel : undefined}>
            <bdi>{plain(s.title || s.change)}</bdi>
          </button>
          <span class="author">
            {s.title && <code class="id">{plain(s.change)}</code>}
            {s.author && <bdi>{plain(s.author.replace(/\s*<[^>]*>$/, ""))}</bdi>}
          </span>
        </td>
        <td role="cell" class="how">
          <State name={shown(s)} />
          {s.held && <span class="state held">‖ held</span>}
          {s.urgent && <span class="state urgent">↑ front</span>}
        </td>
        <td role="cell" class="number steps">
          {s.steps_total > 0 && <Progress done={s.steps_done} total={s.steps_total} />}
        </td>
        <td role="cell" class="when">
          {s.finished_at ? <Ago at={s.finished_at} /> : <Eta of={s} />}
        </td>
        <td role="cell" class="why">
          <Linked queue={s.queue} ids={[...(s.names ?? [])]} title={(id) => table.rows.get(id)?.peek().title} text={s.why} />
        </td>
      </tr>
      {open && (
        <tr role="row" class="panel">
          <td role="cell" colSpan={6} id={panel}>
            <Opened queue={s.queue} change={s.change} />
          </td>
        </tr>
      )}
    </>
  )
}

// toggle opens or closes a row, unless something in it was meant or text is selected.
function toggle(e: MouseEvent, change: string, open: boolean) {
  if ((e.target as Element).closest("a, input") || getSelection()?.type === "Range") return
  choose({ open: open ? "" : change, log: "", in: "", line: "" })
}

// Empty is a queue without any change: how the first one lands.
function Empty({ of }: { of: Overview }) {
  if (at.value) return <Notice title="Nothing had been asked for by then" />
  return (
    <Notice title="Nothing has been asked for yet">
      <p>Land your first change, from a clone of {of.repository ? <bdi>{plain(of.repository)}</bdi> : "the repository"}:</p>
      <pre tabIndex={0}>
        {`git push origin my-branch\nlandfall land --server ${location.origin} --queue ${of.queue} my-branch`}
      </pre>
      <p class="soft">Or without the command:</p>
      <pre tabIndex={0}>{`curl -H 'content-type: application/json' -d '{"entries":[{"ref":"my-branch"}]}' \\\n  ${location.origin}/v1/queues/${encodeURIComponent(of.queue)}/changes`}</pre>
      <p class="soft">It appears here at once.</p>
    </Notice>
  )
}
