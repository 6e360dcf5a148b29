// The page of services: what is missing, the builders of each pool, and who works on what.

import { Header, Notice } from "./frame"
import type { Instance, Report } from "./openapi"
import { Connecting } from "./queues"
import { useRead } from "./read"
import { at, poolPath } from "./router"
import { queues } from "./store"
import { Ago, plain, plural } from "./words"

export function Services() {
  const { value, wrong } = useRead<Report>("/v1/services", "list services")
  return (
    <>
      <Header />
      <main>
        <h1 tabIndex={-1}>Services</h1>
        {wrong && (
          <p role="alert" class="wrong">
            {plain(wrong)}
          </p>
        )}
        {!queues.value ? <Connecting /> : !value ? !wrong && <p class="soft">Reading the services…</p> : <Known of={value} />}
      </main>
    </>
  )
}

function Known({ of }: { of: Report }) {
  const pools = new Map<string, Instance[]>()
  for (const i of of.instances) if (i.service === "builder") pools.set(i.pool ?? "", [...(pools.get(i.pool ?? "") ?? []), i])
  const others = of.instances.filter((i) => i.service !== "builder")
  return (
    <>
      {of.missing.length > 0 && (
        <ul class="troubles" role="alert">
          {of.missing.map((m) => (
            <li key={`${m.service} ${m.partition}`}>{plain(m.sentence)}</li>
          ))}
        </ul>
      )}
      {at.value && <p class="soft">By the claims in the log, which say who had taken a partition and since when. They do not say who was at work, and other services claim nothing that is read here. What builders did then is said by the workers of each pool.</p>}
      {pools.size === 0 && !at.value && (
        <Notice title="No builder is at work">
          <p>
            Nothing is built. <code>landfall up</code> has builders of its own; elsewhere start <code>landfall builder</code>.
          </p>
        </Notice>
      )}
      {[...pools].sort((a, b) => a[0].localeCompare(b[0])).map(([name, builders]) => {
        const alive = builders.filter((b) => b.alive)
        const sum = (value: (b: Instance) => number | undefined) => alive.reduce((n, b) => n + (value(b) ?? 0), 0)
        return (
          <section key={name}>
            <h2>{name ? `Pool ${plain(name)}` : "Builders"}</h2>
            <p class="soft">
              {sum((b) => b.busy)} of {plural(sum((b) => b.workers), "worker")} busy, on {plural(alive.length, "machine")}
              {name && (
                <>
                  {". "}
                  <a href={poolPath(name)}>What they did</a>
                </>
              )}
            </p>
            <Table of={builders} builders />
          </section>
        )
      })}
      {others.length > 0 && (
        <section>
          <h2>Other services</h2>
          <Table of={others} />
        </section>
      )}
      <section>
        <h2>Partitions</h2>
        <div class="wide" tabIndex={0} role="group" aria-label="Partitions">
          <table class="facts">
            <thead>
              <tr>
                {["service", "queues", "worked on by", "state", "behind"].map((h) => (
                  <th key={h} scope="col">
                    {h}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {of.partitions.map((p) => (
                <tr key={`${p.service} ${p.partition}`}>
                  <td>{plain(p.service)}</td>
                  <td>{plain(p.queues.join(", "))}</td>
                  <td>{p.instance ? <bdi>{plain(p.instance)}</bdi> : "nobody"}</td>
                  <td class={p.state === "claimed" ? "" : p.state === "working" ? "state passed" : p.state === "reading" ? "state testing" : "state failed"}>
                    {p.state}
                    {p.state === "claimed" && p.since && (
                      <>
                        {" "}
                        <Ago at={p.since} />
                      </>
                    )}
                  </td>
                  <td>{p.behind_records > 0 ? plural(p.behind_records, "record") : ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </>
  )
}

function Table({ of, builders }: { of: Instance[]; builders?: boolean }) {
  const order = [...of].sort((a, b) => a.service.localeCompare(b.service) || a.instance.localeCompare(b.instance))
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={builders ? "Builders" : "Services"}>
      <table class="facts">
        <thead>
          <tr>
            {(builders ? ["machine", "state", "busy", "has"] : ["service", "instance", "state"]).map((h) => (
              <th key={h} scope="col">
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {order.map((i) => (
            <tr key={`${i.service} ${i.instance}`}>
              {!builders && <td>{plain(i.service)}</td>}
              <td>
                <bdi title={`Version ${i.version}`}>{plain(i.instance)}</bdi>
              </td>
              <td>
                <span class={i.alive && !i.trouble ? "state passed" : "state failed"}>{i.alive ? "● at work" : "✗ silent"}</span>
                {!i.alive && (
                  <>
                    , last heard <Ago at={i.heard} />
                  </>
                )}
                {i.trouble && <span class="wrong"> {plain(i.trouble)}</span>}
              </td>
              {builders && (
                <>
                  <td>
                    {i.busy ?? 0} of {i.workers ?? 0}
                  </td>
                  <td>{plain([...(i.labels ?? []), ...Object.entries(i.resources ?? {}).map(([name, n]) => `${n} ${name}`)].join(", "))}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
