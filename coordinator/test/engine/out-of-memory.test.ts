import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anAgent, end, type Link, start, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'large', descriptor: { retries: { crash: 0 } } })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

test('a run that was ended for want of memory says so, and counts as a crash', async () => {
  await aRun(c, { workflow: 'large' })
  const offer = await takeNext(agent, link)
  const reason = 'it needed more memory than a run may have here'
  await link.report(offer, 1, start(), end({ how: 'killed', signal: 'SIGKILL', reason }, 1))
  await until('the run has failed', async () => (await runOf(c, offer.run)).status === 'failed')
  const { error } = await runOf(c, offer.run)
  assert.equal(error?.code, 'RUN_CRASHED')
  assert.match(JSON.stringify(error), /SIGKILL: it needed more memory/)
})
