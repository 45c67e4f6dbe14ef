import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Call } from '../../api/call.ts'
import { handle, type Turns } from '../../call/handle.ts'
import type { Plan } from '../../call/plan.ts'

/** More than a credential may serve without being looked up. */
const SLOW_MS = 1100

/** Calls something with a credential that is lost by now, when its turn comes so late. */
async function calledAfter(waitMs: number): Promise<{ made: number; failure: unknown }> {
  let made = 0
  const plan: Partial<Plan> = { turns: 'orgCalls', handle: () => ++made }
  const call: Partial<Call<never>> = { stay: () => Promise.reject(new Fault('UNAUTHENTICATED')) }
  const run = async <T>(_: string, act: () => Promise<T> | T) => {
    await pause(waitMs)
    return act()
  }
  const turns = { orgCalls: { run } } as Partial<Turns> as Turns
  let failure: unknown
  try {
    await handle(plan as Plan, call as Call<never>, { turns, orgId: 'org_acme' })
  } catch (error) {
    failure = (error as Fault).code
  }
  return { made, failure }
}

test('who loses the credential while others of the org have their turns is refused, and nothing is done', async () => {
  assert.deepEqual(await calledAfter(SLOW_MS), { made: 0, failure: 'UNAUTHENTICATED' })
})

test('whose turn comes at once is not looked up again', async () => {
  assert.deepEqual(await calledAfter(0), { made: 1, failure: undefined })
})
