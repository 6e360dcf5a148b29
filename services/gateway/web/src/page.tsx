// The page.

import { render } from "preact"
import { useEffect } from "preact/hooks"
import { Access } from "./access"
import { Analytics } from "./analytics"
import { Change } from "./change"
import { DeadLetters } from "./deadletters"
import { Flakes } from "./flakes"
import { Header, Notice, OpenDialog, openKeys, typing } from "./frame"
import { Models } from "./models"
import { PastBar, PastSign } from "./past"
import { Pool } from "./pool"
import { Queue } from "./queue"
import { Queues } from "./queues"
import { at, choose, momentOf, route } from "./router"
import { Services } from "./services"
import { plain } from "./words"

const titles: Record<string, string> = { services: "Services", "dead-letters": "Dead letters", access: "Access" }

function Page() {
  const r = route.value
  useEffect(() => {
    const parts = r.page === "queue" ? [r.queue] : r.page === "pool" ? ["Workers", r.pool] : r.page === "models" ? ["Models", r.queue] : r.page === "analytics" ? ["Figures", r.queue] : r.page === "flakes" ? ["Failing targets", r.queue] : r.page === "change" ? [r.change, r.queue] : r.page in titles ? [titles[r.page]!] : []
    document.title = [...parts, "Landfall"].join(" · ")
  }, [r])
  if (at.value && Number.isNaN(momentOf(at.value)) && r.page !== "pool") return <NoMoment />
  switch (r.page) {
    case "queues":
      return <Queues />
    case "services":
      return <Services />
    case "dead-letters":
      return <DeadLetters />
    case "access":
      return <Access />
    case "queue":
      return <Queue key={r.queue} name={r.queue} />
    case "pool":
      return <Pool key={r.pool} pool={r.pool} />
    case "models":
      return <Models key={r.queue} queue={r.queue} />
    case "analytics":
      return <Analytics key={r.queue} queue={r.queue} />
    case "flakes":
      return <Flakes key={r.queue} queue={r.queue} />
    case "change":
      return <Change key={`${r.queue}/${r.change}`} queue={r.queue} id={r.change} />
    default:
      return (
        <>
          <Header />
          <main>
            <h1 tabIndex={-1}>There is no such page</h1>
            <Notice title="Where to go">
              <p>
                <a href="/">All queues</a>
              </p>
            </Notice>
          </main>
        </>
      )
  }
}

// NoMoment is shown of a past that the address does not name.
function NoMoment() {
  return (
    <>
      <Header />
      <main>
        <h1 tabIndex={-1}>There is no such moment</h1>
        <Notice title={`“${plain(at.value)}” is not a time`}>
          <p>
            A time is written as in <code>{new Date().toISOString().slice(0, 19)}Z</code>.
          </p>
          <p>
            <button type="button" onClick={() => choose({ at: "" })}>
              Back to now
            </button>
          </p>
        </Notice>
      </main>
    </>
  )
}

addEventListener("keydown", (e) => {
  if (e.key === "?" && !typing(e)) openKeys()
})

render(
  <>
    <PastSign />
    <Page />
    <PastBar />
    <OpenDialog />
  </>,
  document.getElementById("page")!,
)
