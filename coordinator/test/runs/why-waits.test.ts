import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { waits } from '../../runs/store-why.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { aCrew, aPool } from '../_kit/crew.ts'
import { aParkedRun, question, sleepFor } from '../_kit/waiting.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('a look at what a run waits for reads no default answer, of which each may have a megabyte', async () => {
  const { pool, workflow } = await aPool(c)
  const crew = await aCrew(c, pool)
  const withDefault = question({ timeoutMs: 1_000_000, onTimeoutText: `"${'x'.repeat(1_000_000)}"` })
  const { run, attempt } = await aParkedRun(crew, { workflow }, withDefault, withDefault)
  const found = await c.db.begin((tx) => waits(tx, run, attempt))
  assert.deepEqual([found.length, found[0]!.hasDefault], [2, true])
  assert.ok(JSON.stringify(found).length < 10_000)
  crew.agent.close()
})

test('what is overdue is said to be, with since when', async () => {
  const { pool, workflow } = await aPool(c)
  const crew = await aCrew(c, pool)
  const asks = [sleepFor(3_600_000), question({ prompt: 'Ship it?', timeoutMs: 3_600_000 })]
  const { run } = await aParkedRun(crew, { workflow }, ...asks)
  await c.db.begin(async (tx) => {
    // Timers of a run that somebody has locked wait.
    await tx`select from runs where id = ${run} for update`
    await c.db`
      update timers set due_at = now() - interval '1 minute' where run_id = ${run} and kind in ('sleep', 'input')`
    const { causes } = (await c.call(ops.runs.why, { run })).why
    const [sleep, input] = causes.map(({ message }) => message)
    assert.match(
      sleep!,
      /^Its sleep was over at .* UTC\. The coordinator has yet to come to it, .*; then it goes on\.$/,
    )
    assert.match(
      input!,
      /^Its time for an answer was over at .* UTC\. .* an answer is taken until it does; then the call/,
    )
    assert.ok(causes.every(({ until }) => until! < Date.now()))
  })
  crew.agent.close()
})
