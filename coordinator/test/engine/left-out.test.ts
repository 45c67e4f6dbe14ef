import assert from 'node:assert/strict'
import test from 'node:test'
import type { OrgId } from '@windlass/shared/ids.ts'
import { leftOut } from '../../engine/commit/left-out.ts'

test('the orgs with the fewest are left out one by one, each key once, and the others as a whole', () => {
  const here = new Map<OrgId, string[]>([
    ['many' as OrgId, ['m1', 'm2', 'm3', 'm4']],
    ['twice' as OrgId, ['t1', 't1', 't2']],
    ['one' as OrgId, ['o1']],
  ])
  const out = (most: number) => leftOut(here, (key) => key, most)
  assert.deepEqual(out(7), { orgs: [], keys: ['o1', 't1', 't2', 'm1', 'm2', 'm3', 'm4'] })
  assert.deepEqual(out(6), { orgs: ['many'], keys: ['o1', 't1', 't2'] })
  assert.deepEqual(out(1), { orgs: ['twice', 'many'], keys: ['o1'] })
})
