import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MIB = 1024 * 1024
const RUNS = 20
/** Twice as long in JSON, and four times in the JSON of an answer. */
const INPUT = '"'.repeat(MIB / 2 - 100)

let c: TestCoordinator
const agents: TestAgent[] = []
before(async () => (c = await aCoordinator()))
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

for (const slots of [1, 2]) {
  test(`large inputs are given out over several claims, in their order; each needs ${slots} of the slots`, async () => {
    const name = `large-${slots}`
    const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name })
    const { slug } = await aWorkflow(c, { descriptor: { pool: name, slots } })
    const runs: string[] = []
    for (let n = 0; n < RUNS; n++) runs.push((await aRun(c, { workflow: slug, input: INPUT })).id)
    const agent = await anAgent(c, { pool: runnerPool.id })
    agents.push(agent)
    const found: string[] = []
    while (found.length < RUNS) {
      const offers = await agent.poll((RUNS - found.length) * slots)
      assert.ok(offers.length > 0, 'what did not fit into one claim comes with the next')
      const bytes = offers.reduce((sum, { inputText }) => sum + inputText.length, 0)
      assert.ok(bytes < 18 * MIB, `${offers.length} runs with ${bytes} bytes of input at once`)
      found.push(...offers.map(({ run }) => run).sort())
    }
    assert.deepEqual(found, runs)
  })
}
