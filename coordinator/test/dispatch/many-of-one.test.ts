/** One agent may have hundreds of runs. What is said of some of them reads these alone, each by its key. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type RunId } from '@windlass/shared/ids.ts'
import type { Database } from '../../db/client.ts'
import { accept } from '../../engine/store/placements.ts'
import { beat } from '../../engine/store/leases.ts'
import { testDatabase } from '../_kit/database.ts'
import { rowsRead } from '../_kit/rows-read.ts'

const THERE = 300
const ASKED = 100
/** Each is found, changed and told of. */
const READS = 3

const runnerId = newId('rnr')
const runs: RunId[] = Array.from({ length: THERE }, () => newId('run'))
const asked = runs.slice(0, ASKED)
let database: Database

before(async () => {
  database = await testDatabase()
  // Without statistics, as on a coordinator that has begun a moment ago.
  await database.db`
    insert into placements (run_id, runner_id, epoch, lease_expires_at)
    select run_id, ${runnerId}, 1, now() + interval '1 hour' from unnest(${runs}::text[]) as run_id`
})
after(() => database.close())

test('accepting some of many runs of an agent', async () => {
  const { read } = await rowsRead(database.db, 'placements', async (db) => {
    const { statuses } = await accept(
      db,
      asked.map((runId) => ({ runId, runnerId, epoch: 1, leaseMs: 75_000 })),
    )
    return [...statuses]
  })
  assert.ok(read <= READS * ASKED, `${read} rows were read`)
})

test('a heartbeat that names some of many runs of an agent', async () => {
  const holds = asked.map((run): [string, number] => [run, 1])
  const { read } = await rowsRead(database.db, 'placements', (db) => beat(db, [{ runnerId, holds, leaseMs: 75_000 }]))
  assert.ok(read <= READS * ASKED, `${read} rows were read`)
})
