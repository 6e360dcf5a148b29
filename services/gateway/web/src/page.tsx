// The page.

import { render } from "preact"
import { useEffect } from "preact/hooks"
import { Change } from "./change"
import { Header, Keys, keysShown, Notice, typing } from "./frame"
import { PastBar, PastSign } from "./past"
import { Queue } from "./queue"
import { Queues } from "./queues"
import { route } from "./router"
import { Services } from "./services"

function Page() {
  const r = route.value
  useEffect(() => {
    document.title = r.page === "queue" ? `${r.queue} · Landfall` : r.page === "change" ? `${r.change} · ${r.queue} · Landfall` : r.page === "services" ? "Services · Landfall" : "Landfall"
  }, [r])
  switch (r.page) {
    case "queues":
      return <Queues />
    case "services":
      return <Services />
    case "queue":
      return <Queue key={r.queue} name={r.queue} />
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

addEventListener("keydown", (e) => {
  if (e.key === "?" && !typing(e)) keysShown.value = true
})

render(
  <>
    <PastSign />
    <Page />
    <PastBar />
    <Keys />
  </>,
  document.getElementById("page")!,
)
