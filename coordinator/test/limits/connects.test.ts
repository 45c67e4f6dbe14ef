import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createConnects } from '../../limits/connects.ts'
import { refusal } from '../_kit/coordinator.ts'

test('a runner that connects too often is refused, and uses up nothing of its org', () => {
  const connects = createConnects({ runner: 2, org: 4 })
  const orgId = newId('org')
  const [one, two] = [newId('rnr'), newId('rnr')].map((id) => ({ id, orgId }))
  for (let n = 0; n < 2; n++) connects.take(one!)
  for (let n = 0; n < 5; n++) assert.throws(() => connects.take(one!), refusal('RATE_LIMITED'))
  for (let n = 0; n < 2; n++) connects.take(two!)
  assert.throws(() => connects.take({ id: newId('rnr'), orgId }), /The runners of this org have connected 4 times/)
  connects.take({ id: newId('rnr'), orgId: newId('org') })
})
