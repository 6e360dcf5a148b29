// The SharedWorker: one stream for all pages of a browser.

import { Feed, type Interest, type Listener } from "./feed"

const feed = new Feed()

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0]!
  const listener: Listener = (messages) => port.postMessage(messages)
  port.onmessage = (message: MessageEvent<Interest | "again" | null>) => {
    if (message.data === "again") feed.again()
    else if (message.data) feed.want(listener, message.data)
    else feed.drop(listener)
  }
})
