import { within } from '@windlass/shared/time.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { type BenchInstance, until } from './bench-instance.ts'
import { reportDelays } from './delays.ts'
import { median, now, wait } from './measure.ts'
import { atLeast, type Report } from './row.ts'
import { settled } from './settled.ts'
import type { SimulatedAgent } from './simulated-agent.ts'

const SOCKETS = 4
const RUNS_PER_SOCKET = 8
const BATCH = 100
const WINDOW = 4
const EVENTS = 200_000

/** Events from agents' sockets to the committed log: acknowledged means committed. */
export async function benchEvents(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const rates: number[] = []
  for (let i = -1; i < repeats; i++) {
    const rate = await pourEvents(instance)
    if (i >= 0) rates.push(rate)
  }
  report({
    name: 'events, agent sockets to committed log',
    value: median(rates),
    unit: 'events/s',
    repeats: rates,
    goal: atLeast(median(rates), 60_000, '/s'),
  })
}

interface Pouring {
  offer: Offer
  agent: SimulatedAgent
  sent: number
  acked: number
}

async function pourEvents(instance: BenchInstance): Promise<number> {
  const perRun = Math.ceil(EVENTS / (SOCKETS * RUNS_PER_SOCKET) / BATCH) * BATCH
  const total = perRun * SOCKETS * RUNS_PER_SOCKET
  const runs = new Map<string, Pouring>()
  const agents = await Promise.all(
    Array.from({ length: SOCKETS }, () =>
      instance.simulateAgent({
        slots: RUNS_PER_SOCKET,
        onRun: (offer, owner) => void runs.set(offer.run, { offer, agent: owner, sent: 0, acked: 0 }),
        onFrame: (frame) => {
          if (frame.t !== 'ack') return
          for (const ack of frame.acks) {
            const run = runs.get(ack.run)
            if (!run) continue
            run.acked = ack.seq
            pour(run)
          }
        },
      }),
    ),
  )
  for (let i = 0; i < SOCKETS * RUNS_PER_SOCKET; i++) await instance.client.runs.trigger({ workflow: 'noop-fresh' })
  await until(() => runs.size === SOCKETS * RUNS_PER_SOCKET, 20_000)

  const since = performance.now()
  for (const run of runs.values()) pour(run)
  await until(() => [...runs.values()].every((run) => run.acked >= perRun + 1), 120_000)
  const rate = total / ((performance.now() - since) / 1000)
  for (const run of runs.values()) finish(run)
  await settled(instance, () => Promise.resolve(true))
  for (const agent of agents) agent.close()
  return rate

  /** Keeps a few batches under way, as an agent with a full spool does. */
  function pour(run: Pouring): void {
    while (run.sent < perRun + 1 && run.sent - run.acked < WINDOW * BATCH) {
      const first = run.sent + 1
      const at = Date.now()
      const entries: Entry[] =
        first === 1
          ? [['start', at]]
          : Array.from({ length: BATCH }, (_, i) => [
              'e',
              at,
              'log.stdout',
              `{"text":"line ${first + i} of a program that says a good deal"}`,
            ])
      run.sent += entries.length
      run.agent.send({ t: 'entries', batches: [{ run: run.offer.run, epoch: run.offer.epoch, first, entries }] })
    }
  }
  function finish(run: Pouring): void {
    const entries: Entry[] = [['end', Date.now(), { how: 'returned', outputText: 'null' }, 0]]
    run.agent.send({
      t: 'entries',
      batches: [{ run: run.offer.run, epoch: run.offer.epoch, first: run.sent + 1, entries }],
    })
  }
}

const SSE_EVENTS = 200
const SSE_EVERY_MS = 10
const READ_MS = 30_000

/** From an agent's send to the reader of the live stream: the append itself, its commit, and all that comes after. */
export async function benchStream(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  let taken: Offer | undefined
  const agent = await instance.simulateAgent({ slots: 1, onRun: (offer) => (taken = offer) })
  const { run } = await instance.client.runs.trigger({ workflow: 'noop-fresh' })
  await until(() => taken !== undefined, 10_000)
  const offer = taken!
  let seq = 0
  const send = (entry: Entry) =>
    agent.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: ++seq, entries: [entry] }] })
  send(['start', Date.now()])

  const delays: number[] = []
  const reading = (async () => {
    for await (const event of instance.client.follow(run.id, { channels: ['phase', 'lifecycle'] })) {
      if (event.type === 'phase') delays.push(now() - Number(event.data.sentAt))
    }
  })()
  for (let i = 0; i < SSE_EVENTS * repeats; i++) {
    send(['e', Date.now(), 'phase', JSON.stringify({ name: 'tick', sentAt: now() })])
    await wait(SSE_EVERY_MS)
  }
  send(['end', Date.now(), { how: 'returned', outputText: 'null' }, 0])
  await within(READ_MS, reading, 'the stream did not end with its run')
  agent.close()
  const name = 'append to SSE reader, from the agent’s send on'
  reportDelays(report, { name, samples: delays, repeats, most: { p50: 15 } })
}
