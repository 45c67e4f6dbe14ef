// A run that the database refuses to let into its queue, for what only it has.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { createStubborn } from '../../../db/stubborn.ts'
import { givesEntryUp } from '../../../engine/commit/give-entry-up.ts'
import { isLongAgo, lookNow } from '../../_kit/after-outage.ts'
import { aCoordinatorOfItsOwn, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { untilPolled } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({ LOG_LEVEL: 'error' })
  await aWorkflow(c, { slug: 'any' })
  isLongAgo(c)
})
after(() => c?.stop())

async function aDelayedRun(): Promise<string> {
  return (await c.call(ops.runs.trigger, { org: c.org, workflow: 'any', delayMs: 3_600_000 })).run.id
}

/** Its time to enter has come a minute ago. Resolves when it was tried: it is in the queue, put off, or has ended. */
async function entering(...runs: string[]): Promise<void> {
  await c.db`
    update runs
    set created_at = now() - interval '1 hour', queued_at = now() - interval '1 minute'
    where id = any(${runs})`
  await c.db`update timers set due_at = now() - interval '1 minute' where run_id = any(${runs}) and kind = 'enqueue'`
  lookNow(c)
  await untilPolled('all to be tried', async () => {
    const due = await c.db`
      select from timers where run_id = any(${runs}) and kind = 'enqueue' and due_at < now() + interval '30 seconds'`
    return due.length === 0
  })
}

test('a run that alone can never enter its queue is told why, and fails after so many tries', async (t) => {
  t.mock.method(process.stderr, 'write', () => true)
  c.deps.timersBehind.stubborn = createStubborn({ times: 3, ms: 0 })
  const bad = await aDelayedRun()
  await c.db.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'as the test says' using errcode = 'XX000';
    end $$;
    create trigger refuse before insert on run_queue
      for each row when (new.run_id = '${bad}') execute function refuse()`)
  // While it fails alone nobody knows whether it is the run.
  for (let n = 0; n < 5; n++) await entering(bad)
  assert.equal((await runOf(c, bad)).status, 'queued')
  const [cause] = (await c.call(ops.runs.why, { run: bad })).why.causes
  assert.equal(cause!.code, 'DELAYED')
  assert.match(cause!.message, /^It was to enter the queue at .*letting it in has failed since; it is tried again at/)
  assert.match(cause!.change, /`timer\.failed`/)
  for (let n = 0; n < 2; n++) {
    assert.equal((await runOf(c, bad)).status, 'queued')
    await entering(await aDelayedRun())
    await entering(bad)
  }
  const { status, error } = await runOf(c, bad)
  assert.deepEqual([status, error?.code], ['failed', 'INTERNAL'])
  assert.match(error!.message, /could not let the run into its queue.*`timer\.failed`/)
  assert.equal((await c.db`select from timers where run_id = ${bad}`).length, 0)
})

test('what others hold, what takes too long and what the server lacks is not counted, nor other timers', async () => {
  const stubborn = { failed: () => assert.fail('it was counted'), committed: () => {} }
  const deps = { ...c.deps, timersBehind: { stubborn } }
  const timer = { runId: 'run_x' as RunId, kind: 'enqueue', n: 0 } as const
  const failure = (code: string) => Object.assign(new Error(code), { code })
  for (const code of ['57014', '55P03', '53100', '25006', '58030'])
    assert.equal(await givesEntryUp(deps, timer, failure(code)), false)
  assert.equal(await givesEntryUp(deps, { ...timer, kind: 'sleep' }, failure('XX000')), false)
})
