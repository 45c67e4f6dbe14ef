import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end } from '../_kit/agent.ts'
import { aCoordinator, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { anEvictedRun, aParkedRun, type Crew, question, sleepFor } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c)
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const cancel = async (run: string) => (await c.call(ops.runs.cancel, { run })).run

for (const ask of [sleepFor(), question()]) {
  test(`a run whose process is kept while it waits (${ask.for}) is cancelling until that process is gone`, async () => {
    const offer = await aParkedRun(crew, { workflow: 'any' }, ask)
    assert.equal((await cancel(offer.run)).status, 'cancelling')
    await crew.link.report(offer, 4, end({ how: 'cancelled', forced: false }))
    assert.equal((await runOf(c, offer.run)).status, 'cancelled')
    assert.deepEqual((await typesOf(c, offer.run)).slice(-2), ['run.cancelling', 'run.cancelled'])
  })

  test(`a run that waits without a process (${ask.for}) is cancelled at once`, async () => {
    const { run } = await anEvictedRun(crew, { workflow: 'any' }, ask)
    assert.equal((await cancel(run)).status, 'cancelled')
    assert.deepEqual((await typesOf(c, run)).slice(-2), ['run.cancelling', 'run.cancelled'])
  })
}
