import assert from 'node:assert/strict'
import test from 'node:test'
import type { OrgId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createLongEnds } from '../../engine/commit/long-ends.ts'

const waiting = (...orgs: string[]) => orgs.map((orgId, n) => ({ orgId: orgId as OrgId, n }))

test('each org has its turn, however many of another one are older', async () => {
  const ends = createLongEnds(createLog({ process: 'test' }))
  const all = waiting('a', 'a', 'a', 'b', 'c')
  const turns: string[] = []
  for (let n = 0; n < 6; n++) {
    const { orgId } = ends.inTurn(all)!
    turns.push(orgId)
    ends.begin(orgId, [], () => Promise.resolve())
    await ends.idle()
  }
  assert.equal(turns.join(''), 'abcabc')
  assert.equal(ends.inTurn([]), undefined)
})
