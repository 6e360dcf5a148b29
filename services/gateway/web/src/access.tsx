// The page of access: who the reader is, what it may do, the tokens of programs, and why somebody may do something or not.

import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { Ask, send } from "./act"
import { Dialog, Header, Leaving, openDialog, SignedOut, Wide } from "./frame"
import { me, signedIn, useMay, who } from "./me"
import type { AccessExplanation, Permission, Token, TokenBody, TokenList, TokenReply } from "./openapi"
import { Connecting } from "./queues"
import { failureOf, useRead } from "./read"
import { at, choose, query } from "./router"
import { queues } from "./store"
import { Ago, exact, plain } from "./words"

const roles: NonNullable<TokenBody["role"]>[] = ["viewer", "contributor", "lander", "operator", "admin"]
const verbs: Permission["verb"][] = ["read", "logs", "land", "cancel", "retry", "verify", "urgent", "move", "hold", "pause", "quarantine", "simulate", "models", "deliveries", "tokens"]

export function Access() {
  const known = queues.value
  const names = Object.keys(known ?? {}).sort()
  const asked = query.value.get("queue") ?? ""
  const queue = names.includes(asked) ? asked : (names[0] ?? "")
  const manages = Object.values(who.value?.roles ?? {}).includes("admin")
  return (
    <>
      <Header />
      <main>
        <h1 tabIndex={-1}>Access</h1>
        {!known || !who.value ? (
          <Connecting />
        ) : (
          <>
            <You />
            {queue && !at.value && <May queue={queue} names={names} />}
            {manages ? (
              <>
                <Tokens names={names.filter((name) => who.value?.roles[name] === "admin")} />
                {queue && !at.value && <Explain queue={queue} />}
              </>
            ) : (
              <p class="soft">
                Tokens are made and revoked, and what others may do is explained, by admins of a queue. {who.value.mode === "open" && "Where access.mode is open, nobody is: landfall token create --direct makes tokens where the log can be written."}
              </p>
            )}
          </>
        )}
      </main>
    </>
  )
}

function You() {
  const reader = who.value!
  return (
    <section>
      <h2>You</h2>
      <dl class="about">
        <Row name="name">
          <bdi>{plain(reader.name || reader.subject || me.value || "not given")}</bdi>
        </Row>
        {signedIn.value && (
          <Row name="known as">
            <bdi>{plain(reader.subject)}</bdi> at <bdi>{plain(reader.issuer)}</bdi>
          </Row>
        )}
        {reader.email && (
          <Row name="address">
            <bdi>{plain(reader.email)}</bdi>
          </Row>
        )}
        <Row name="roles">
          {Object.keys(reader.roles).length === 0 ? "none: access.rules in the configuration give them" : ""}
          <ul class="plain">
            {Object.entries(reader.roles)
              .sort()
              .map(([queue, role]) => (
                <li key={queue}>
                  <bdi>{plain(queue)}</bdi>: {role}
                </li>
              ))}
          </ul>
        </Row>
      </dl>
      {reader.mode === "open" && <p class="soft">Access is open: whoever reaches this gateway is believed the name that it gives.</p>}
      {signedIn.value && (
        <button type="button" aria-haspopup="dialog" onClick={() => openDialog((close) => <Leaving close={close} />)}>
          Sign out here or everywhere
        </button>
      )}
    </section>
  )
}

function Row({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function May({ queue, names }: { queue: string; names: string[] }) {
  const may = useMay(queue)
  return (
    <section>
      <h2>What you may do</h2>
      <Choice name="In the queue" value={queue} of={names} choose={(value) => choose({ queue: value })} />
      {may && (
        <Wide name="What you may do" heads={["verb", "may you", "why not"]}>
          {verbs.map((verb) => {
            const p = may(verb)
            return (
              <tr key={verb}>
                <td>{verb}</td>
                <td>
                  {p.allowed || p.allowed_for_own_changes ? (
                    <span class="state passed">{p.allowed ? "✓ yes" : "✓ your own changes"}</span>
                  ) : (
                    <span class="state failed">✗ no</span>
                  )}
                </td>
                <td>{plain(`${p.message ?? ""} ${p.advice ?? ""}`)}</td>
              </tr>
            )
          })}
        </Wide>
      )}
    </section>
  )
}

// Choice is one of several names.
function Choice({ name, value, of, choose }: { name: string; value: string; of: string[]; choose: (value: string) => void }) {
  return (
    <label class="named">
      <span>{name}</span>
      <select value={value} onChange={(e) => choose(e.currentTarget.value)}>
        {of.map((one) => (
          <option key={one} value={one}>
            {plain(one)}
          </option>
        ))}
      </select>
    </label>
  )
}

function Tokens({ names }: { names: string[] }) {
  const { value, wrong } = useRead<TokenList>("/v1/tokens", "list tokens")
  const revoke = (t: Token) =>
    openDialog((close) => (
      <Ask title={`Revoke: ${plain(t.name)}`} asks="Programs that present it are refused from now on. It cannot be undone." button="Revoke" danger close={close} send={(why) => send(`/v1/tokens/${encodeURIComponent(t.id)}/revoke`, why ? { why } : {}, false)} />
    ))
  const all = query.value.get("tokens") === "all"
  const shown = (value?.tokens ?? []).filter((t) => all || !over(t)).reverse()
  return (
    <section>
      <h2>Tokens</h2>
      <p class="soft">A program proves by a token who it is. Nobody is shown a token's secret again.</p>
      {wrong && (
        <p role="alert" class="wrong">
          {plain(wrong)}
        </p>
      )}
      {value && (
        <>
          <div class="line">
            {!at.value && (
              <button type="button" class="main" aria-haspopup="dialog" onClick={() => openDialog((close) => <Make names={names} close={close} />)}>
                Make a token
              </button>
            )}
            <label>
              <input type="checkbox" checked={all} onChange={(e) => choose({ tokens: e.currentTarget.checked ? "all" : "" })} /> also those that are over
            </label>
          </div>
          {shown.length === 0 ? (
            <p>There are none.</p>
          ) : (
            <Wide name="Tokens" heads={["name", "for", "queues", "made", "last used", "ends", "revoke"]}>
              {shown.map((t) => (
                <tr key={t.id}>
                  <td>
                    <bdi title={t.id}>{plain(t.name)}</bdi>
                  </td>
                  <td>{plain(t.verbs?.join(", ") || t.role)}</td>
                  <td>{t.queues.map((q) => (q === "*" ? "all" : plain(q))).join(", ")}</td>
                  <td>
                    <Ago at={t.created} />
                    {t.created_by && (
                      <>
                        {" by "}
                        <bdi>{plain(t.created_by)}</bdi>
                      </>
                    )}
                  </td>
                  <td>{t.last_use ? new Date(t.last_use).toLocaleDateString() : at.value ? "not known" : "never"}</td>
                  <td>{t.revoked ? <span title={exact(t.revoked)}>revoked</span> : t.expires ? <span title={exact(t.expires)}>{new Date(t.expires).toLocaleDateString()}</span> : "never"}</td>
                  <td>
                    {!over(t) && !at.value && (
                      <button type="button" class="danger" aria-haspopup="dialog" aria-label={`Revoke ${plain(t.name)}`} onClick={() => revoke(t)}>
                        Revoke
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </Wide>
          )}
        </>
      )}
    </section>
  )
}

const over = (t: Token) => !!t.revoked || (!!t.expires && Date.parse(t.expires) < (at.value ? Date.parse(at.value) : Date.now()))

// lives are how long a token lasts.
const lives: Record<string, string> = { "a day": "24h", "30 days": "720h", "90 days": "2160h", "a year": "8760h", "for ever": "" }

// Make makes a token, and shows its secret once.
function Make({ names, close }: { names: string[]; close: () => void }) {
  const name = useSignal("")
  const role = useSignal<string>("lander")
  const picked = useSignal<string[]>(names.slice(0, 1))
  const life = useSignal("90 days")
  const wrong = useSignal("")
  const made = useSignal<TokenReply | undefined>(undefined)
  const sending = useSignal(false)
  const make = async () => {
    const body: TokenBody = { name: name.value.trim(), role: role.value as TokenBody["role"], queues: picked.value, ...(lives[life.value] && { ttl: lives[life.value] }) }
    sending.value = true
    try {
      const answer = await fetch("/v1/tokens", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })
      if (answer.ok) made.value = (await answer.json()) as TokenReply
      else wrong.value = await failureOf(answer)
    } catch {
      wrong.value = "The gateway does not answer. It may have been made: look at the list before you try again."
    }
    sending.value = false
  }
  if (made.value) {
    return (
      <Dialog title={`The token ${plain(made.value.token.name)}`} close={close}>
        <p>Copy its secret now: it is not shown again, to nobody. Commands take it from LANDFALL_TOKEN.</p>
        <pre class="block secret" tabIndex={0} aria-label="Secret">
          {made.value.secret}
        </pre>
        <p class="line">
          <button type="button" class="main" onClick={() => void navigator.clipboard?.writeText(made.value!.secret)}>
            Copy
          </button>
          <button type="button" class="quiet" onClick={close}>
            Done
          </button>
        </p>
      </Dialog>
    )
  }
  return (
    <Dialog title="Make a token" close={close}>
      <div class="fields">
        <label>
          <span>Name (others read it)</span>
          <input autoFocus maxLength={100} value={name.value} onInput={(e) => (name.value = e.currentTarget.value)} />
        </label>
        <Choice name="Role" value={role.value} of={roles} choose={(value) => (role.value = value)} />
        <Choice name="It lasts" value={life.value} of={Object.keys(lives)} choose={(value) => (life.value = value)} />
        <fieldset>
          <legend>Queues</legend>
          {names.map((queue) => (
            <label key={queue}>
              <input type="checkbox" checked={picked.value.includes(queue)} onChange={(e) => (picked.value = e.currentTarget.checked ? [...picked.value, queue] : picked.value.filter((q) => q !== queue))} /> <bdi>{plain(queue)}</bdi>
            </label>
          ))}
        </fieldset>
      </div>
      <SignedOut />
      {wrong.value && (
        <p role="alert" class="wrong">
          {plain(wrong.value)}
        </p>
      )}
      <p class="line">
        <button type="button" class="main" disabled={sending.value || !name.value.trim() || picked.value.length === 0} onClick={make}>
          Make
        </button>
        <button type="button" class="quiet" onClick={close}>
          Back
        </button>
      </p>
    </Dialog>
  )
}

// Explain says whether somebody may do something to the queue. What is asked is in the address.
function Explain({ queue }: { queue: string }) {
  const asked = query.value
  const form = (name: string) => asked.get(name) ?? ""
  const verb = (verbs as string[]).includes(form("verb")) ? form("verb") : "land"
  const admin = who.value?.roles[queue] === "admin"
  const ask = (e: Event) => {
    e.preventDefault()
    const given = new FormData(e.currentTarget as HTMLFormElement)
    const text = (name: string) => String(given.get(name) ?? "").trim()
    choose({ queue, user: text("user"), verb: text("verb"), issuer: text("issuer"), email: text("email"), claim: text("claim").split("\n").map((c) => c.trim()) })
  }
  return (
    <section>
      <h2>What somebody else may do in {plain(queue)}</h2>
      {!admin ? (
        <p class="soft">You are no admin of this queue. Choose another above.</p>
      ) : (
        <>
          <form class="fields" onSubmit={ask} key={asked.toString()}>
            <label>
              <span>User (the claim sub)</span>
              <input name="user" required maxLength={1000} defaultValue={form("user")} />
            </label>
            <label>
              <span>Verb</span>
              <select name="verb">
                {verbs.map((v) => (
                  <option key={v} value={v} selected={v === verb}>
                    {v}
                  </option>
                ))}
              </select>
            </label>
            <label>
              <span>Issuer (its name in the configuration)</span>
              <input name="issuer" maxLength={1000} defaultValue={form("issuer")} />
            </label>
            <label>
              <span>Verified address</span>
              <input name="email" maxLength={1000} defaultValue={form("email")} />
            </label>
            <label>
              <span>Claims, NAME=VALUE in lines</span>
              <textarea name="claim" rows={2} defaultValue={asked.getAll("claim").join("\n")} />
            </label>
            <button type="submit">Explain</button>
          </form>
          {form("user") && <Answer path={`/v1/queues/${encodeURIComponent(queue)}/access?${new URLSearchParams([["user", form("user")], ["verb", verb], ["issuer", form("issuer")], ["email", form("email")], ...asked.getAll("claim").map((c) => ["claim", c])])}`} />}
        </>
      )}
    </section>
  )
}

function Answer({ path }: { path: string }) {
  const { value, wrong } = useRead<AccessExplanation>(path)
  if (wrong)
    return (
      <p role="alert" class="wrong">
        {plain(wrong)}
      </p>
    )
  if (!value) return null
  return (
    <>
      <p role="status" class={value.allowed || value.allowed_for_own_changes ? "state passed" : "state failed"}>
        {value.allowed ? `✓ Allowed, as ${value.role}.` : value.allowed_for_own_changes ? `✓ Allowed for own changes, as ${value.role}. For others: ${plain(value.reason ?? "")}` : `✗ Not allowed: ${plain(value.reason ?? "")}`}
      </p>
      {value.rules.length > 0 && (
        <Wide name="Rules" heads={["rule", "gives", "applies", "because"]}>
          {value.rules.map((l) => (
            <tr key={l.rule}>
              <td>{l.rule}</td>
              <td>{l.role}</td>
              <td>{l.applies ? <span class="state passed">✓ yes</span> : <span class="state waiting">– no</span>}</td>
              <td>
                <bdi>{plain(l.why)}</bdi>
              </td>
            </tr>
          ))}
        </Wide>
      )}
    </>
  )
}
