// What `why` says of ends that come by themselves: of the time for the queue or the whole run, and of a cancel.
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import type { Why } from '@windlass/shared/model/why.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { end, start, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import * as crews from '../_kit/crew.ts'
import { until } from '../_kit/until.ts'
import { accepted, type Crew } from '../_kit/waiting.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
})
afterEach(() => {
  for (const agent of agents.splice(0)) agent.close()
})
after(() => c.stop())

const whyOf = async (run: string): Promise<Why> => (await c.call(ops.runs.why, { run })).why

/** A workflow with an agent of its own. */
async function aScene(descriptor: Record<string, unknown>): Promise<{ crew: Crew; workflow: string }> {
  const { pool, workflow } = await crews.aPool(c, descriptor)
  const crew = await crews.aCrew(c, pool)
  agents.push(crew.agent)
  return { crew, workflow }
}

/** Lets a timer of the run come due, and waits for what comes of it. */
async function ripen(run: string, kind: string): Promise<void> {
  await c.db`update timers set due_at = now() where run_id = ${run} and kind = ${kind}`
  c.deps.timers.expect(0)
  await until(`the ${kind} of ${run}`, async () => {
    const left = await c.db`select from timers where run_id = ${run} and kind = ${kind}`
    return left.length === 0
  })
}

test('the time for the queue is told of the first attempt alone, as that of others does not end them', async () => {
  const { crew, workflow } = await aScene({ timeout: { queue: '1h' }, retries: { crash: 1 } })
  const { id } = await aRun(c, { workflow })
  assert.match((await whyOf(id)).summary, /When it has not begun by .* UTC, it fails with RUN_TIMED_OUT\.$/)
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start(), end({ how: 'killed', signal: 'SIGKILL' }))
  assert.equal((await runOf(c, id)).attempt, 2)
  const [cause] = (await whyOf(id)).causes
  assert.doesNotMatch(cause!.message, /RUN_TIMED_OUT/)
  await ripen(id, 'queue-timeout')
  assert.equal((await runOf(c, id)).status, 'queued')
})
