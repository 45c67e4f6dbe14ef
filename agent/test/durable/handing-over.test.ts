import assert from 'node:assert/strict'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import type { JournalOp } from '@windlass/shared/wire/journal.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aBundle } from '../_kit/bundle.ts'
import { isParked, wake } from '../_kit/durable.ts'
import { endingOf, linesOf, type FakeCoordinator, type FakePlacement } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

// The second signal. No test waits for a grace: what takes so long fails by its deadline.

const GRACE_MS = 600_000
const LOST = { how: 'lost', reason: LOST_REASONS.shutdown }
const PATIENT = { env: { WINDLASS_AGENT_STOP_MS: '600000' } }

/** `busy` keeps the process, so that the program does not park. */
async function aProgram(fake: FakeCoordinator, body: string): Promise<FakePlacement> {
  const start = `import { AgentStoppedError, CancelledError, context, sleep, step } from 'windlass'`
  const busy = 'const busy = setInterval(() => {}, 1000)'
  const files = { 'main.mjs': `${start}\nexport async function run() {\n${busy}\n${body}\n}` }
  const placement = fake.offer(await aBundle(files), { graceMs: GRACE_MS })
  await until('it begins', () => linesOf(placement).includes('begins'))
  return placement
}

const opsOf = ({ entries }: FakePlacement): JournalOp[] =>
  entries.flatMap((entry) => (entry[0] === 'j' ? [JSON.parse(entry[2]) as JournalOp] : []))
const stepsOf = (placement: FakePlacement) =>
  opsOf(placement).flatMap((op) => (op.op === 'close' ? [`${op.entry.name} ${op.state}`] : []))

/** Resolves when the programs that were there before have been told. */
async function askToStop(fake: FakeCoordinator, agent: { stop(): void }): Promise<FakePlacement> {
  const last = await aProgram(
    fake,
    `context.signal.addEventListener('abort', () => { clearInterval(busy); console.log('told') })
     console.log('begins')
     await new Promise(() => {})`,
  )
  agent.stop()
  agent.stop()
  await until('they are told', () => linesOf(last).includes('told'))
  return last
}

/** The second wait stands inside of a step. */
const PAYS = `
  console.log('begins')
  await step('one', async () => { await sleep('1h') })
  await step('two', () => 2)`
const INSIDE = 2

withAgent(
  'what steps come to after an agent was asked to stop is kept, and a run that returns is over',
  async ({ fake, agent }) => {
    const placement = await aProgram(fake, `${PAYS}\nreturn 'paid'`)
    const last = await askToStop(fake, agent)
    wake(fake, placement, INSIDE)
    assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '"paid"' })
    assert.deepEqual(stepsOf(placement), ['one done', 'two done'])
    assert.deepEqual(await fake.ending(last), LOST)
    assert.equal(await agent.done, 0)
  },
  PATIENT,
)

withAgent(
  'one that only waits after that is given up',
  async ({ fake, agent }) => {
    const placement = await aProgram(fake, `${PAYS}\nclearInterval(busy)\nawait sleep('2h')`)
    await askToStop(fake, agent)
    wake(fake, placement, INSIDE)
    assert.deepEqual(await fake.ending(placement), { how: 'evicted', reason: 'shutdown' })
    assert.ok(placement.entries.some(([kind]) => kind === 'park') && !isParked(placement))
    assert.equal(await agent.done, 0)
  },
  PATIENT,
)

const saga = (onAbort = '') => `
  await step('charge', () => 1)
  try {
    await step('pack', () => new Promise((resolve, reject) => {
      context.signal.addEventListener('abort', () => { ${onAbort}; reject(context.signal.reason) })
      console.log('begins')
    }))
  } catch {
    await step('refund', () => 1)
    console.log('refunded: ' + context.signal.reason.name)
  }`

withAgent(
  'a program undoes nothing for the stop of its agent, and is lost',
  async ({ fake, agent }) => {
    const placement = await aProgram(fake, saga('clearInterval(busy)'))
    const waiting = await aProgram(fake, `context.signal\nconsole.log('begins')\nawait new Promise(() => {})`)
    agent.stop()
    agent.stop()
    // As soon as nothing else of it goes on.
    assert.deepEqual(await fake.ending(placement), LOST)
    assert.deepEqual(stepsOf(placement), ['charge done'])
    assert.deepEqual(linesOf(placement), ['begins'])
    assert.equal(endingOf(waiting), undefined)
  },
  PATIENT,
)

withAgent(
  'who cancels a run meanwhile is heard, and the program undoes what it has done',
  async ({ fake, agent }) => {
    const placement = await aProgram(fake, saga())
    await askToStop(fake, agent)
    const { run, epoch } = placement.offer
    fake.send({ t: 'cancel', runs: [{ run, epoch, why: 'cancelled', reason: 'typo', graceMs: GRACE_MS }] })
    assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
    assert.deepEqual(linesOf(placement), ['begins', 'refunded: CancelledError'])
  },
  PATIENT,
)

withAgent(
  'one that is asked to stop and has no lease any more is ended at once',
  async ({ fake, agent }) => {
    const placement = await aProgram(fake, `console.log('begins')\nawait new Promise(() => {})`)
    await askToStop(fake, agent)
    fake.mute.add('heartbeat')
    assert.deepEqual(await fake.ending(placement), { how: 'lost', reason: LOST_REASONS.fenced })
  },
  { ...PATIENT, settings: { fenceMs: 2000 } },
)

withAgent(
  'the third signal ends it at once',
  async ({ fake, agent }) => {
    const placement = await aProgram(fake, `console.log('begins')\nawait new Promise(() => {})`)
    await askToStop(fake, agent)
    agent.stop()
    assert.deepEqual(await fake.ending(placement), LOST)
    assert.equal(await agent.done, 0)
  },
  PATIENT,
)
