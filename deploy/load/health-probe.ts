// A process that asks for /healthz again and again until it is told to stop, and then tells how long each answer took.
import { Agent, get, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'

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

const url = `${process.argv[2]}/healthz`
const agent = new Agent({ keepAlive: true })
while (!stopped.signal.aborted && looked.error === undefined) {
  const since = performance.now()
  const status = await answerOf().catch((error: unknown) => String(error))
  if (status === 200) looked.delays.push(performance.now() - since)
  else looked.error = `/healthz was answered with ${status}`
  await wait(LOOK_MS)
}
if (!stopped.signal.aborted) await once(stopped.signal, 'abort')
process.send?.(looked, () => process.exit(0))

async function answerOf(): Promise<number | undefined> {
  const asked = get(url, { agent, signal: AbortSignal.timeout(ANSWERS_MS) })
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  await text(response)
  return response.statusCode
}
