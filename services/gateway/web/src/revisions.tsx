// The revisions of a change, and what two of them differ in. A difference is asked for when the reader wants it.

import { useSignal } from "@preact/signals"
import type { Change, Difference, Revision } from "./openapi"
import { useRead } from "./read"
import { exact, plain, plural } from "./words"

// mostLines bounds what is drawn of a difference.
const mostLines = 4000

export function Revisions({ of }: { of: Change }) {
  const list = of.revisions
  const from = useSignal(0)
  const to = useSignal(0)
  const asked = useSignal("")
  if (list.length < 2) return null
  // While nothing is chosen it is the newest one and the one before.
  const newer = list.find((r) => r.revision === to.value) ?? list[list.length - 1]!
  const older = list.find((r) => r.revision === from.value) ?? list[Math.max(0, list.indexOf(newer) - 1)]!
  const pair = `from=${older.revision}&to=${newer.revision}`
  return (
    <section>
      <h2>Its revisions</h2>
      <div class="line">
        <Pick name="From" of={list} value={older} choose={(n) => (from.value = n)} />
        <Pick name="to" of={list} value={newer} choose={(n) => (to.value = n)} />
        <button type="button" disabled={older === newer} onClick={() => (asked.value = pair)}>
          Show the difference
        </button>
      </div>
      {asked.value === pair && <Shown of={of} pair={pair} />}
    </section>
  )
}

function Pick({ name, of, value, choose }: { name: string; of: Revision[]; value: Revision; choose: (revision: number) => void }) {
  return (
    <label>
      <span>{name} </span>
      <select value={String(value.revision)} onChange={(e) => choose(Number(e.currentTarget.value))}>
        {of.map((r) => (
          <option key={r.revision} value={String(r.revision)}>
            {r.revision}: {r.head.slice(0, 8)}, {exact(r.at)}
          </option>
        ))}
      </select>
    </label>
  )
}

// kinds are the classes of lines of a patch, by what they begin with.
const kinds: [string, string][] = [
  ["diff ", "file"],
  ["@@", "hunk"],
  ["+++", ""],
  ["---", ""],
  ["+", "added"],
  ["-", "removed"],
]

function Shown({ of, pair }: { of: Change; pair: string }) {
  const { value, wrong } = useRead<Difference>(`/v1/queues/${encodeURIComponent(of.queue)}/changes/${encodeURIComponent(of.change)}/difference?${pair}`)
  if (wrong)
    return (
      <p role="alert" class="wrong">
        {plain(wrong)}
      </p>
    )
  if (!value) return <p class="soft">Comparing the revisions…</p>
  if (value.text === "" && !value.cut) return <p>The two are the same, but for what the mainline changed below them.</p>
  const lines = value.text.replace(/\n$/, "").split("\n")
  const more = lines.length > mostLines || value.cut
  return (
    <>
      <p class="soft">
        {value.with_mainline
          ? `Revision ${value.from.revision} does not merge with the mainline that revision ${value.to.revision} is on, so what changed there is in it too.`
          : `As if both were on the mainline that revision ${value.to.revision} is on.`}
      </p>
      <pre class="block patch" tabIndex={0} aria-label="The difference">
        {lines.slice(0, mostLines).map((line, i) => (
          <span key={i} class={kinds.find(([start]) => line.startsWith(start))?.[1]}>
            {plain(line) || " "}
          </span>
        ))}
      </pre>
      {more && <p class="soft">It goes on: this is the first {plural(Math.min(lines.length, mostLines), "line")}. In a clone: git range-diff.</p>}
    </>
  )
}
