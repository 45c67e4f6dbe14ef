import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { waits } from '../../runs/store-why.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { aCrew, aPool } from '../_kit/crew.ts'
import { aParkedRun, question } from '../_kit/waiting.ts'

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
