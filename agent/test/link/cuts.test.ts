import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed } from '@windlass/shared/test/_kit/seed.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgent } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { cuttingProxy } from '../_kit/cutting-proxy.ts'
import { endingOf, FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'

const seed = chosenSeed()

const LINES = 400
const TALKS = `for (let n = 1; n <= ${LINES}; n++) { console.log('line ' + n + ' ' + 'x'.repeat(n % 90)); await new Promise((r) => setTimeout(r, 1)) } return process.pid`

test('connections that are cut at random bytes lose nothing and double nothing', async (t) => {
  t.diagnostic(`again: ${repeated(import.meta.filename, { SEED: seed })}`)
  const fake = await FakeCoordinator.start()
  const proxy = await cuttingProxy(fake.url, seed, 40_000)
  const { folder, remove } = await aFolder()
  const bundle = await aProgram(TALKS)
  const agent = await anAgent(proxy.url, folder)
  const all = [1, 2, 3].map(() => fake.offer(bundle))
  // An offer whose answer is cut is lost here, and without a run that talks there is nothing left to cut.
  const more = setInterval(() => {
    if (!all.some((placement) => placement.state === 'accepted' && !endingOf(placement))) all.push(fake.offer(bundle))
  }, 500)
  try {
    await until('twelve connections were cut', () => proxy.cuts() >= 12)
    proxy.heal()
    clearInterval(more)
    const taken = all.filter((placement) => placement.state === 'accepted')
    assert.ok(taken.length > 0, 'no offer got through')
    for (const placement of taken) {
      const ending = await fake.ending(placement)
      assert.ok(ending.how === 'returned', JSON.stringify(ending))
      assert.deepEqual(
        linesOf(placement),
        Array.from({ length: LINES }, (_, n) => `line ${n + 1} ${'x'.repeat((n + 1) % 90)}`),
      )
      assert.deepEqual(
        placement.entries.map(([kind]) => kind).filter((kind) => kind !== 'e'),
        ['start', 'end'],
      )
      assert.ok(isGone(Number(ending.outputText)))
    }
    await until('all is forgotten', () => fake.heard('heartbeat').at(-1)?.holds.length === 0)
  } finally {
    clearInterval(more)
    agent.stop()
    agent.stop()
    await agent.done
    await proxy.close()
    await fake.close()
    await remove()
  }
})

test('a coordinator that is away for a while gets everything when it is back', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const agent = await anAgent(fake.url, folder)
  try {
    const placement = fake.offer(await aProgram(TALKS))
    await until('it talks', () => linesOf(placement).length > 10)
    fake.mute.add('hello')
    fake.cut()
    await until('the agent knocks', () => fake.heard('hello').length > 1)
    const had = linesOf(placement).length
    await new Promise((resolve) => setImmediate(resolve))
    fake.mute.delete('hello')
    fake.cut()
    assert.equal((await fake.ending(placement)).how, 'returned')
    assert.ok(had < LINES)
    assert.equal(linesOf(placement).length, LINES)
  } finally {
    agent.stop()
    agent.stop()
    await agent.done
    await fake.close()
    await remove()
  }
})

test('an agent whose credential is refused says so and goes on trying', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const first = await anAgent(fake.url, folder)
  first.stop()
  await first.done
  const other = await FakeCoordinator.start()
  const agent = await anAgent(other.url, folder)
  try {
    const line = await until('the log says it', () => agent.lines.find((each) => each.name === 'link.unauthenticated'))
    assert.match(String(line.advice), /revoked|WINDLASS_URL/)
  } finally {
    agent.stop()
    assert.equal(await agent.done, 0)
    await fake.close()
    await other.close()
    await remove()
  }
})
