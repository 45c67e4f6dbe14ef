import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { type BenchInstance, until } from './bench-instance.ts'
import { httpLoad } from './http-load.ts'
import { median, now, percentile, residentMiB, wait } from './measure.ts'
import { atLeast, atMost, type Report } from './report.ts'
import { type SimulatedAgent, startSimulatedAgent } from './simulated-agent.ts'

const CALLERS = 256
const RUNS = 12_000

/** Trigger to completed with agents that execute nothing: the coordinator's own ceiling. Every run is durable. */
export async function benchCoordinator(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const agent = await startSimulatedAgent({ url: instance.url, token: await instance.registrationToken(), slots: 512 })
  const rates: number[] = []
  let peak = 0
  const watch = setInterval(() => (peak = Math.max(peak, residentMiB(instance.coordinatorPid))), 100)
  for (let i = -1; i < repeats; i++) {
    const since = performance.now()
    const load = await httpLoad({
      url: instance.url,
      path: '/v1/orgs/default/workflows/noop-fresh/runs',
      apiKey: instance.apiKey,
      body: '{}',
      connections: CALLERS,
      requests: RUNS,
      expect: 201,
    })
    if (load.failed > 0) throw new Error(`${load.failed} triggers were refused`)
    await until(async () => await isQuiet(instance), 120_000)
    if (i >= 0) rates.push(RUNS / ((performance.now() - since) / 1000))
  }
  clearInterval(watch)
  agent.close()
  report({
    name: 'coordinator alone, trigger to completed',
    value: median(rates),
    unit: 'runs/s',
    repeats: rates,
    goal: atLeast(median(rates), 4000, '/s'),
  })
  report({ name: 'memory, coordinator, peak under that load', value: peak, unit: 'MiB' })
}

async function isQuiet({ db }: BenchInstance): Promise<boolean> {
  await wait(20)
  const [row] = await db<
    [{ busy: boolean }]
  >`select exists (select from run_queue) or exists (select from placements) as busy`
  return !row.busy
}

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
    Array.from({ length: SOCKETS }, async () =>
      startSimulatedAgent({
        url: instance.url,
        token: await instance.registrationToken(),
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
  await until(() => isQuiet(instance), 20_000)
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

/** From an agent's send to the reader of the live stream: the append itself, its commit included, and all that comes after. */
export async function benchStream(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  let taken: Offer | undefined
  const agent = await startSimulatedAgent({
    url: instance.url,
    token: await instance.registrationToken(),
    slots: 1,
    onRun: (offer) => (taken = offer),
  })
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
  await reading
  agent.close()
  const p50 = median(delays)
  report({
    name: 'append to SSE reader, from the agent’s send on, p50',
    value: p50,
    unit: 'ms',
    goal: atMost(p50, 15, 'ms'),
  })
  report({ name: 'append to SSE reader, from the agent’s send on, p99', value: percentile(delays, 0.99), unit: 'ms' })
}
