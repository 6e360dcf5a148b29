// A change that is opened in its row.

import type { Summary } from "./openapi"
import { plain } from "./words"

export function Opened({ of }: { of: Summary }) {
  return (
    <>
      <p>
        <code>{plain(of.change)}</code>, revision {of.revision}
      </p>
      {of.failure && (
        <>
          <p>{plain(of.failure.sentence)}</p>
          <pre class="block" tabIndex={0}>
            {of.failure.lines.map(plain).join("\n")}
          </pre>
        </>
      )}
      {of.commits && <p>On the mainline as {of.commits.map((c) => <code key={c}>{c.slice(0, 12)} </code>)}</p>}
    </>
  )
}
