// A process that sends a request again and again until it is told to stop, and then tells how long each answer took.
import { Agent, type IncomingMessage, request } from 'node:http'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'

/** What is asked, as JSON on the command line. */
export interface Asked {
  url: string
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: string
  /** Status of the answer. Another one ends the looks. */
  expect: number
}

export interface Looked {
  /** Milliseconds from each question to the end of its answer. */
  delays: number[]
  /** Why it has stopped early. */
  error?: string
}

const LOOK_MS = 50
const ANSWERS_MS = 60_000

const looked: Looked = { delays: [] }
const stopped = new AbortController()
process.on('message', () => stopped.abort())
process.on('disconnect', () => process.exit(0))

const { url, method = 'GET', headers = {}, body, expect } = JSON.parse(process.argv[2]!) as Asked
const agent = new Agent({ keepAlive: true })
while (!stopped.signal.aborted && looked.error === undefined) {
  const since = performance.now()
  const status = await answerOf().catch((error: unknown) => String(error))
  if (status === expect) looked.delays.push(performance.now() - since)
  else looked.error = `${url} was answered with ${status}`
  await wait(LOOK_MS)
}
if (!stopped.signal.aborted) await once(stopped.signal, 'abort')
process.send?.(looked, () => process.exit(0))

async function answerOf(): Promise<number | undefined> {
  const asked = request(url, { method, headers, agent, signal: AbortSignal.timeout(ANSWERS_MS) })
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  await text(response)
  return response.statusCode
}
