import assert from 'node:assert/strict'
import test from 'node:test'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createLongEnds } from '../../engine/commit/long-ends.ts'

const ends = () => createLongEnds(createLog({ process: 'test' }), () => Promise.resolve([]))

/** Adds one that notes its runs, with this prefix; resolves when it was its turn. */
function noting(line: ReturnType<typeof ends>, turns: string[]) {
  return (org: string, runs: string[], prefix = '') =>
    new Promise<void>((resolve) =>
      line.add({
        orgId: org as OrgId,
        runIds: runs as RunId[],
        act: async (ids) => {
          turns.push(...(ids.length > 0 ? ids.map((id) => prefix + id) : ['none']))
          resolve()
        },
      }),
    )
}

test('each org has its turn, however many of another one are older', async () => {
  const turns: string[] = []
  const add = noting(ends(), turns)
  await Promise.all([add('a', ['a1']), add('a', ['a2']), add('a', ['a3']), add('b', ['b1']), add('c', ['c1'])])
  // The first had begun before the others came.
  assert.deepEqual(turns, ['a1', 'a2', 'b1', 'c1', 'a3'])
})

test('of what is added for one run the newest counts', async () => {
  const turns: string[] = []
  const add = noting(ends(), turns)
  await Promise.all([add('a', ['under way']), add('a', ['once', 'twice']), add('a', ['twice'], 'new ')])
  assert.deepEqual(turns, ['under way', 'once', 'new twice'])
  // An end is told also that nothing is left for it to do.
  await Promise.all([add('a', ['under way']), add('a', ['thrice']), add('a', ['thrice'], 'new ')])
  assert.deepEqual(turns.slice(3), ['under way', 'none', 'new thrice'])
})
