import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import type { AgentBatch, ReadBatch } from '../../engine/rules/batch.ts'
import { createSlowCommits } from '../../db/slow-commits.ts'
import { createBacklog } from '../../engine/commit/backlog.ts'
import { openEntries } from '../../engine/commit/entries.ts'
import { end, line, returned } from '../_kit/agent.ts'

const batchOf = (...entries: AgentBatch['entries']): AgentBatch => ({
  orgId: newId('org'),
  runnerId: newId('rnr'),
  run: newId('run'),
  epoch: 1,
  first: 2,
  entries,
})

test('a batch that could not be read without a database goes back to its agent, not to the others', async () => {
  const loss = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const written: string[] = []
  const entries = openEntries({
    log: createLog({ process: 'test' }, 'error'),
    slow: createSlowCommits(),
    backlog: createBacklog(),
    patienceMs: -1,
    read: () => Promise.reject(loss),
    commit: (batches: ReadBatch[]) => {
      written.push(...batches.map(({ run }) => run))
      return Promise.resolve(batches.map(() => ({ kind: 'ack', seq: 2 }) as const))
    },
    onCommit: () => {},
    giveUp: () => Promise.reject(new Error('nothing is given up')),
    onRefused: () => {},
  })
  const plain = batchOf(line('a'))
  const [unread, taken] = await Promise.allSettled([entries.add(batchOf(end(returned(1)))), entries.add(plain)])
  assert.deepEqual(unread, { status: 'rejected', reason: loss })
  assert.deepEqual(taken, { status: 'fulfilled', value: { kind: 'ack', seq: 2 } })
  assert.deepEqual(written, [plain.run])
  await entries.idle()
})
