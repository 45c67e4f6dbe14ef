import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Call } from '../../api/call.ts'
import { handle, type Turns } from '../../call/handle.ts'
import type { Plan } from '../../call/plan.ts'
import { createOrgTurns, READS } from '../../limits/org-turns.ts'
import { noCredential } from '../../stay.ts'

/** More than a credential may serve without being looked up. */
const SLOW_MS = 1100

/** Calls something with a credential that is lost by now, when its turn comes so late. */
async function calledAfter(waitMs: number): Promise<{ made: number; failure: unknown }> {
  let made = 0
  const plan: Partial<Plan> = { row: { method: 'GET' } as Plan['row'], turns: 'orgReads', handle: () => ++made }
  const call: Partial<Call<never>> = {
    assertConnected: () => {},
    stay: () => Promise.reject(new Fault('UNAUTHENTICATED')),
  }
  const orgReads = createOrgTurns({ ...READS, seats: { org: 1, all: 1 } })
  const before = orgReads.run('org_acme', noCredential, () => pause(waitMs))
  const handled = handle(plan as Plan, call as Call<never>, { turns: { orgReads } as Turns, orgId: 'org_acme' })
  const [, result] = await Promise.allSettled([before, handled])
  return { made, failure: result.status === 'rejected' ? (result.reason as Fault).code : undefined }
}

test('who loses the credential while others of the org have their turns is refused, and nothing is done', async () => {
  assert.deepEqual(await calledAfter(SLOW_MS), { made: 0, failure: 'UNAUTHENTICATED' })
})

test('nothing is read for who has gone before its turn, and what changes something is done', async () => {
  const assertConnected = () => {
    throw new Error('gone')
  }
  const turns = { orgReads: createOrgTurns(READS) } as Turns
  const made: string[] = []
  const handled = (method: Plan['row']['method']) => {
    const plan: Partial<Plan> = {
      row: { method } as Plan['row'],
      turns: 'orgReads',
      handle: () => made.push(method),
    }
    return handle(plan as Plan, { assertConnected } as unknown as Call<never>, { turns, orgId: 'org_acme' })
  }
  await assert.rejects(async () => handled('GET'), /gone/)
  await handled('POST')
  assert.deepEqual(made, ['POST'])
})

test('whose turn comes at once is not looked up again', async () => {
  assert.deepEqual(await calledAfter(0), { made: 1, failure: undefined })
})
