import assert from 'node:assert/strict'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aProgram, packed } from '../_kit/bundle.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

withAgent(
  'a run is accepted before it is executed, and its events and its output arrive in order',
  async ({ fake }) => {
    const program = await aProgram(`console.log('one'); phase('middle'); console.log('two'); return { got: input }`)
    const placement = fake.offer(program, { inputText: '{"a":1}' })
    assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '{"got":{"a":1}}' })
    const kinds = placement.entries.map((entry) => (entry[0] === 'e' ? entry[2] : entry[0]))
    assert.deepEqual(kinds, ['start', 'log.stdout', 'phase', 'log.stdout', 'end'])
    assert.deepEqual(linesOf(placement), ['one', 'two'])
    const order = fake.frames.map((frame) => frame.t).filter((t) => t === 'accept' || t === 'entries')
    assert.equal(order[0], 'accept')
    await until('the placement is forgotten', () => fake.heard('heartbeat').at(-1)?.holds.length === 0)
  },
)

withAgent('more runs than slots are executed one after another, and the bundle is fetched once', async ({ fake }) => {
  const program = await aProgram(`return input`)
  const all = Array.from({ length: 12 }, (_, n) => fake.offer(program, { inputText: String(n) }))
  const endings = await Promise.all(all.map((placement) => fake.ending(placement)))
  assert.deepEqual(
    endings,
    all.map((_, n) => ({ how: 'returned', outputText: String(n) })),
  )
  assert.equal(fake.bundleFetches, 1)
})

withAgent('an output over its limit fails the run and names both sizes', async ({ fake }) => {
  const placement = fake.offer(await aProgram(`return 'x'.repeat(5000)`), { outputBytes: 1000 })
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'threw')
  assert.equal(ending.error.code, 'OUTPUT_TOO_LARGE')
  assert.match(ending.error.message, /5002.*1000/)
  assert.deepEqual(ending.error.detail, { bytes: 5002, limitBytes: 1000 })
})

withAgent('a bundle that is none fails the run, and the next run is not disturbed', async ({ fake }) => {
  const bad = fake.offer(packed(Buffer.from('no archive at all')))
  const good = fake.offer(await aProgram(`return 1`))
  const ending = await fake.ending(bad)
  assert.ok(ending.how === 'threw')
  assert.equal(ending.error.code, 'BUNDLE_UNUSABLE')
  assert.deepEqual(await fake.ending(good), { how: 'returned', outputText: '1' })
  assert.deepEqual(
    bad.entries.map(([kind]) => kind),
    ['end'],
  )
})
