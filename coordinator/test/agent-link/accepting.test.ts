import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createAccepting } from '../../agent-link/accepting.ts'

test('an org has so many acceptances under way over all of its agents, and others have theirs', () => {
  const accepting = createAccepting({ runner: 10, org: 15 })
  const agentOf = (orgId: ReturnType<typeof anOrg>) => ({ id: newId('rnr'), orgId })
  const anOrg = () => newId('org')
  const [mine, theirs] = [anOrg(), anOrg()]
  const [a, b] = [agentOf(mine), agentOf(mine)]
  const leave = accepting.enter(a, 10)
  assert.ok(leave)
  assert.equal(accepting.enter(a, 1), undefined)
  assert.equal(accepting.enter(b, 6), undefined)
  assert.ok(accepting.enter(b, 5))
  assert.ok(accepting.enter(agentOf(theirs), 10))
  leave()
  assert.ok(accepting.enter(a, 10))
})
