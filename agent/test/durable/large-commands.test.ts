import assert from 'node:assert/strict'
import type { JournalOp } from '@windlass/shared/wire/journal.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aBundle } from '../_kit/bundle.ts'
import { endingOf } from '../_kit/fake-coordinator.ts'
import type { FakeCoordinator, FakePlacement } from '../_kit/fake-coordinator.ts'
import { isParked } from '../_kit/durable.ts'
import { withAgent } from '../_kit/with-agent.ts'

async function commandOf(fake: FakeCoordinator, body: string): Promise<{ placement: FakePlacement; op: JournalOp }> {
  const text = `import { step, workflows } from 'windlass'\nexport async function run() {\n${body}\n}\nvoid [step, workflows]\n`
  const placement = fake.offer(await aBundle({ 'main.mjs': text }))
  const entry = await until(
    'its word is there',
    () => placement.entries.find(([kind]) => kind === 'j') ?? endingOf(placement),
  )
  assert.ok(Array.isArray(entry), JSON.stringify(entry))
  return { placement, op: JSON.parse(String(entry[2])) }
}

// Both are doubled: a quote in JSON in JSON is four characters.
withAgent('the largest input of a child gets through, whatever is in it', async ({ fake }) => {
  const { placement, op } = await commandOf(
    fake,
    `return workflows.call('child', Array.from({ length: 349000 }, () => ''))`,
  )
  assert.ok(op.op === 'open' && op.ask.for === 'child')
  assert.equal(op.ask.inputText.length, 1_047_001)
  await until('it waits', () => isParked(placement))
})

for (const [what, text] of [
  ['quotes', `'"'.repeat(520000)`],
  ['line breaks', `'\\n'.repeat(520000)`],
  ['controls', `'\\u0001'.repeat(174000)`],
  ['backslashes', `'\\\\'.repeat(520000)`],
] as const) {
  withAgent(`the largest result of a step gets through: ${what}`, async ({ fake }) => {
    const { placement, op } = await commandOf(
      fake,
      `const text = await step('any', () => ${text})\nreturn text === ${text}`,
    )
    assert.ok(op.op === 'close' && op.state === 'done', op.op === 'close' ? op.result.slice(0, 300) : op.op)
    assert.ok(op.result.length > 1_000_000, String(op.result.length))
    assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: 'true' })
  })
}
