import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { createWaiting } from '../../limits/waiting.ts'

const refused = (scope: string, limit: number) => (error: unknown) =>
  error instanceof Fault &&
  error.code === 'RATE_LIMITED' &&
  error.detail?.['scope'] === scope &&
  error.detail['limit'] === limit

test('many keys of one org have no more open together than the limit of the org, and other orgs go on', () => {
  const waiting = createWaiting({ caller: 2, org: 3 })
  const a = (id: string) => waiting.enter({ id, orgId: 'a' })
  const leave = a('one')
  a('one')
  assert.throws(() => a('one'), refused('waiting', 2))
  a('two')
  assert.throws(() => a('two'), refused('org_waiting', 3))
  assert.throws(() => a('three'), refused('org_waiting', 3))
  waiting.enter({ id: 'other', orgId: 'b' })
  leave()
  a('three')
  assert.throws(() => a('two'), refused('org_waiting', 3), 'one that was refused counts for nothing')
})

test('0 is no limit', () => {
  const waiting = createWaiting({ caller: 0, org: 0 })
  for (let n = 0; n < 1000; n++) waiting.enter({ id: 'one', orgId: 'a' })
})
