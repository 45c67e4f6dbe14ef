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
  const told = await aParked(fake, WAITS, { inputText: '"x"' })
  wake(fake, told, 1)
  assert.deepEqual(await fake.ending(told), { how: 'returned', outputText: '"x"' })
  assert.deepEqual(kindsOf(told), ['start', 'log.stdout', 'j', 'park', 'resume', 'j', 'log.stdout', 'end'])
  assert.deepEqual(linesOf(told), ['before', 'woken with 1'])
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
    for (const told of parked) wake(fake, told, 1)
    const endings = await Promise.all(parked.map((told) => fake.ending(told)))
    assert.ok(endings.every(({ how }) => how === 'returned'))
  },
  ONE_SLOT,
)

withAgent(
  'who is woken has the next slot, before any new work',
  async ({ fake }) => {
    const told = await aParked(fake)
    // Holds the slot until it is told to go on; two wakes of the first wait for it, and so does a new run.
    const busy = fake.offer(await aHandMade(`say('busy'); open(1); await message('wake'); deliver(1); done()`))
    await until('it has the slot', () => linesOf(busy).length > 0)
    wake(fake, told, 1)
    wake(fake, told, 2)
    const fresh = fake.offer(await aProgram(ENDS))
    await until('two heartbeats', () => fake.heard('heartbeat').length > 2)
    assert.ok(isParked(told))
    wake(fake, busy, 1)
    await Promise.all([told, busy, fresh].map((each) => fake.ending(each)))
    assert.deepEqual(linesOf(told), ['before', 'woken with 1,2'])
    const order = fake
      .heard('entries')
      .flatMap(({ batches }) => batches.map(({ run, entries }) => [run, entries[0]![0]]))
    const at = (run: string, kind: string) => order.findIndex(([name, first]) => name === run && first === kind)
    assert.ok(at(told.offer.run, 'resume') < at(fresh.offer.run, 'start'))
  },
  ONE_SLOT,
)

withAgent('a wake that crosses a parking keeps the program going, however late it is read', async ({ fake }) => {
  // Parks as if the wake lay in the pipe still, and works on long after.
  const told = fake.offer(
    await aHandMade(`
      open(1); say('open'); await message('wake'); park('sleep', 0); say('parks')
      await message('wake'); park('sleep', 1); say('parks again')
      deliver(1, 2); close(3); await kept(3); say('goes on'); open(4); park(); await message('wake'); done()`),
  )
  await until('its wait is open', () => linesOf(told).includes('open'))
  wake(fake, told, 1)
  await until('it says that it parks', () => linesOf(told).includes('parks'))
  wake(fake, told, 2)
  await until('it is parked', () => isParked(told))
  wake(fake, told, 4)
  await fake.ending(told)
  const kinds = kindsOf(told).filter((kind) => kind !== 'log.stdout')
  assert.deepEqual(kinds, ['start', 'j', 'j', 'j', 'j', 'park', 'resume', 'end'])
})

withAgent('a wake that comes before the program has begun counts like any other', async ({ fake }) => {
  const told = fake.offer(await aHandMade(`await message('wake'); open(1); park(); await message('wake'); done()`))
  await until('its process is being started', () => kindsOf(told).includes('start'))
  wake(fake, told, 1)
  await until('it is parked', () => isParked(told))
  wake(fake, told, 2)
  await fake.ending(told)
  assert.deepEqual(kindsOf(told), ['start', 'j', 'park', 'resume', 'end'])
})

withAgent('a wake that the program does not need leaves it parked', async ({ fake }) => {
  // The runtime answers a wake that brings nothing it waits for by parking again.
  const body = `open(1); say('open'); await message('wake'); park()
    for (;;) { const { completions } = await message('wake'); if (completions.some((each) => each.n === 1)) break; park() }
    deliver(1); done()`
  const hot = fake.offer(await aHandMade(body))
  await until('its wait is open', () => linesOf(hot).includes('open'))
  wake(fake, hot, 7)
  await until('it is parked', () => isParked(hot))
  assert.deepEqual(kindsOf(hot), ['start', 'j', 'log.stdout', 'park'])
  wake(fake, hot, 7)
  wake(fake, hot, 8)
  await until('it is parked again', () => kindsOf(hot).length > 4 && isParked(hot))
  wake(fake, hot, 1)
  assert.equal((await fake.ending(hot)).how, 'returned')
})

withAgent('what the program has had already does not wake it', async ({ fake }) => {
  const told = await aParked(fake, `await waitFor(1); await waitFor(2); done()`)
  wake(fake, told, 1)
  await until('it is parked again', () => kindsOf(told).filter((kind) => kind === 'park').length === 2)
  wake(fake, told, 1)
  const beats = fake.heard('heartbeat').length
  await until('two more heartbeats', () => fake.heard('heartbeat').length >= beats + 2)
  assert.ok(isParked(told))
  wake(fake, told, 1, 2)
  await fake.ending(told)
})

withAgent('a parked program that ends by itself has gone on before', async ({ fake }) => {
  const told = fake.offer(await aHandMade(`open(1); park(); setTimeout(() => { say('by itself'); done(1) }, 50)`))
  assert.deepEqual(await fake.ending(told), { how: 'returned', outputText: '1' })
  assert.deepEqual(kindsOf(told), ['start', 'j', 'park', 'log.stdout', 'resume', 'end'])
})

withAgent('a parked program that goes on by itself and parks again says both', async ({ fake }) => {
  const told = await aParked(fake, `open(1); park(); setTimeout(() => { open(2); park('input') }, 50)`)
  await until('it is parked for input', () => entryOf(told, 'park')?.[2] === 'input')
  assert.deepEqual(kindsOf(told), ['start', 'j', 'park', 'j', 'resume', 'park'])
})

withAgent('a parked process that dies says how it died', async ({ fake }) => {
  const told = fake.offer(
    await aHandMade(`frame('out', 'half a line'); open(1); park(); process.kill(process.ppid, 'SIGKILL')`),
  )
  assert.deepEqual(await fake.ending(told), { how: 'killed', signal: 'SIGKILL' })
  assert.deepEqual(linesOf(told), [], 'what is left of the line comes with the replay')
})
