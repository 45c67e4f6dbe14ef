import assert from 'node:assert/strict'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aProgram } from '../_kit/bundle.ts'
import { aParked, entryOf, isParked, kindsOf, wake, WAITS } from '../_kit/durable.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { withAgent } from '../_kit/with-agent.ts'

const ONE_SLOT = { env: { WINDLASS_AGENT_SLOTS: '1' } }
const ENDS = `return 'passes'`

withAgent('a program parks, is woken and goes on, and everything is told in its order', async ({ fake }) => {
  const placement = await aParked(fake, WAITS, { inputText: '"x"' })
  wake(fake, placement, 1)
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '"x"' })
  assert.deepEqual(kindsOf(placement), ['start', 'log.stdout', 'j', 'park', 'resume', 'j', 'log.stdout', 'end'])
  assert.deepEqual(linesOf(placement), ['before', 'woken with 1'])
})

withAgent(
  'ten parked programs leave the one slot to others, and go on one after another',
  async ({ fake }) => {
    const program = await aHandMade(WAITS)
    const parked = Array.from({ length: 10 }, (_, n) => fake.offer(program, { inputText: String(n) }))
    await until('all are parked', () => parked.every(isParked))
    await until('all are named in a heartbeat', () => fake.heard('heartbeat').some(({ holds }) => holds.length === 10))
    const other = fake.offer(await aProgram(ENDS))
    assert.deepEqual(await fake.ending(other), { how: 'returned', outputText: '"passes"' })
    for (const placement of parked) wake(fake, placement, 1)
    const endings = await Promise.all(parked.map((placement) => fake.ending(placement)))
    assert.ok(endings.every(({ how }) => how === 'returned'))
  },
  ONE_SLOT,
)

withAgent(
  'who is woken has the next slot, before any new work',
  async ({ fake }) => {
    const placement = await aParked(fake)
    // Holds the slot until it is told to go on; two wakes of the first wait for it, and so does a new run.
    const busy = fake.offer(await aHandMade(`say('busy'); open(1); await message('wake'); deliver(1); done()`))
    await until('it has the slot', () => linesOf(busy).length > 0)
    wake(fake, placement, 1)
    wake(fake, placement, 2)
    const fresh = fake.offer(await aProgram(ENDS))
    await until('two heartbeats', () => fake.heard('heartbeat').length > 2)
    assert.ok(isParked(placement))
    wake(fake, busy, 1)
    await Promise.all([placement, busy, fresh].map((each) => fake.ending(each)))
    assert.deepEqual(linesOf(placement), ['before', 'woken with 1,2'])
    const order = fake
      .heard('entries')
      .flatMap(({ batches }) => batches.map(({ run, entries }) => [run, entries[0]![0]]))
    const at = (run: string, kind: string) => order.findIndex(([name, first]) => name === run && first === kind)
    assert.ok(at(placement.offer.run, 'resume') < at(fresh.offer.run, 'start'))
  },
  ONE_SLOT,
)

withAgent('a wake that crosses a parking keeps the program going, however late it is read', async ({ fake }) => {
  // Parks as if the wake lay in the pipe still, and works on long after.
  const placement = fake.offer(
    await aHandMade(`
      open(1); say('open'); await message('wake'); park('sleep', 0); say('parks')
      await message('wake'); park('sleep', 1); say('parks again')
      deliver(1, 2); close(3); await kept(3); say('goes on'); open(4); park(); await message('wake'); done()`),
  )
  await until('its wait is open', () => linesOf(placement).includes('open'))
  wake(fake, placement, 1)
  await until('it says that it parks', () => linesOf(placement).includes('parks'))
  wake(fake, placement, 2)
  await until('it is parked', () => isParked(placement))
  wake(fake, placement, 4)
  await fake.ending(placement)
  const kinds = kindsOf(placement).filter((kind) => kind !== 'log.stdout')
  assert.deepEqual(kinds, ['start', 'j', 'j', 'j', 'j', 'park', 'resume', 'end'])
})

withAgent('a wake that comes before the program has begun counts like any other', async ({ fake }) => {
  const placement = fake.offer(await aHandMade(`await message('wake'); open(1); park(); await message('wake'); done()`))
  await until('its process is being started', () => kindsOf(placement).includes('start'))
  wake(fake, placement, 1)
  await until('it is parked', () => isParked(placement))
  wake(fake, placement, 2)
  await fake.ending(placement)
  assert.deepEqual(kindsOf(placement), ['start', 'j', 'park', 'resume', 'end'])
})

withAgent('a wake that the program does not need leaves it parked', async ({ fake }) => {
  // The runtime answers a wake that brings nothing it waits for by parking again.
  const body = `open(1); say('open'); await message('wake'); park()
    for (;;) { const { completions } = await message('wake'); if (completions.some((each) => each.n === 1)) break; park() }
    deliver(1); done()`
  const computing = fake.offer(await aHandMade(body))
  await until('its wait is open', () => linesOf(computing).includes('open'))
  wake(fake, computing, 7)
  await until('it is parked', () => isParked(computing))
  assert.deepEqual(kindsOf(computing), ['start', 'j', 'log.stdout', 'park'])
  wake(fake, computing, 7)
  wake(fake, computing, 8)
  await until('it is parked again', () => kindsOf(computing).length > 4 && isParked(computing))
  wake(fake, computing, 1)
  assert.equal((await fake.ending(computing)).how, 'returned')
})

withAgent('what the program has had already does not wake it', async ({ fake }) => {
  const placement = await aParked(fake, `await waitFor(1); await waitFor(2); done()`)
  wake(fake, placement, 1)
  await until('it is parked again', () => kindsOf(placement).filter((kind) => kind === 'park').length === 2)
  wake(fake, placement, 1)
  const beats = fake.heard('heartbeat').length
  await until('two more heartbeats', () => fake.heard('heartbeat').length >= beats + 2)
  assert.ok(isParked(placement))
  wake(fake, placement, 1, 2)
  await fake.ending(placement)
})

withAgent('a parked program that ends by itself has gone on before', async ({ fake }) => {
  const placement = fake.offer(await aHandMade(`open(1); park(); setTimeout(() => { say('by itself'); done(1) }, 50)`))
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
  assert.deepEqual(kindsOf(placement), ['start', 'j', 'park', 'log.stdout', 'resume', 'end'])
})

withAgent('a parked program that goes on by itself and parks again says both', async ({ fake }) => {
  const placement = await aParked(fake, `open(1); park(); setTimeout(() => { open(2); park('input') }, 50)`)
  await until('it is parked for input', () => entryOf(placement, 'park')?.[2] === 'input')
  assert.deepEqual(kindsOf(placement), ['start', 'j', 'park', 'j', 'resume', 'park'])
})

withAgent('a parked process that dies says how it died', async ({ fake }) => {
  const placement = fake.offer(
    await aHandMade(`frame('out', 'half a line'); open(1); park(); process.kill(process.ppid, 'SIGKILL')`),
  )
  assert.deepEqual(await fake.ending(placement), { how: 'killed', signal: 'SIGKILL' })
  assert.deepEqual(linesOf(placement), [], 'what is left of the line comes with the replay')
})
