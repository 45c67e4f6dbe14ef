import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { type Claimant, decideHolders, type KeyKind } from '../../inbound/rules/holders.ts'

/** `id:m1`, `signature:s1` and so on. */
const claimant = (runId: string, ...names: string[]): Claimant => ({
  runId: runId as RunId,
  keys: names.map((name) => ({ kind: name.split(':')[0] as KeyKind, name })),
})

/** What the rows say when each key that is free is taken by the first that has it. */
function decide(claimants: Claimant[], before: Record<string, string> = {}) {
  const held = new Map(Object.entries(before) as [string, RunId][])
  for (const { runId, keys } of claimants) for (const { name } of keys) if (!held.has(name)) held.set(name, runId)
  const { holders, keeps } = decideHolders(claimants, held)
  return { holders: Object.fromEntries(holders), keeps: Object.fromEntries(keeps) }
}

test('the first of those that come together has its keys, and the others are repetitions of it', () => {
  const { holders, keeps } = decide([claimant('r1', 'id:m1', 'signature:s1'), claimant('r2', 'id:m1', 'signature:s2')])
  assert.deepEqual(holders, { r2: 'r1' })
  assert.deepEqual(keeps, { 'id:m1': 'r1', 'signature:s1': 'r1' })
})

test('a copy of an old delivery under the id of a new one takes nothing from it', () => {
  const copies = ['r2', 'r3'].map((run) => claimant(run, 'id:m2', 'signature:s1', 'content:m2-old'))
  const real = claimant('r4', 'id:m2', 'signature:s2', 'content:m2-new')
  const { holders, keeps } = decide([...copies, real], { 'id:m1': 'r1', 'signature:s1': 'r1', 'content:m1-old': 'r1' })
  assert.deepEqual(holders, { r2: 'r1', r3: 'r1' })
  assert.deepEqual(keeps, { 'id:m2': 'r4', 'signature:s2': 'r4', 'content:m2-new': 'r4' })
})

test('the new signature of a repetition goes to the run that was made, where the body is the same', () => {
  const first = claimant('r1', 'id:m1', 'signature:s1', 'content:m1-a')
  const again = claimant('r2', 'id:m1', 'signature:s2', 'content:m1-a')
  const other = claimant('r3', 'id:m1', 'signature:s3', 'content:m1-b')
  const copy = claimant('r4', 'id:x', 'signature:s2', 'content:x-a')
  const { holders, keeps } = decide([first, again, other, copy])
  assert.deepEqual(holders, { r2: 'r1', r3: 'r1', r4: 'r1' })
  assert.deepEqual(keeps, { 'id:m1': 'r1', 'signature:s1': 'r1', 'content:m1-a': 'r1', 'signature:s2': 'r1' })
})

test('a replay has a run whoever holds its keys, and takes those that are free', () => {
  const replay = { ...claimant('r2', 'id:m1', 'signature:s1'), isReplay: true }
  const again = claimant('r3', 'id:m1', 'signature:s2')
  const first = decideHolders([replay, again], new Map())
  assert.deepEqual([...first.holders], [['r3', 'r2']])
  assert.deepEqual([...first.earlier], [])
  const later = decideHolders([replay, again], new Map([['id:m1', 'r1' as RunId]]))
  assert.deepEqual([...later.holders], [['r3', 'r1']])
  assert.deepEqual([...later.earlier], [['r2', 'r1']])
  assert.deepEqual([...later.keeps], [['signature:s1', 'r2']])
})
