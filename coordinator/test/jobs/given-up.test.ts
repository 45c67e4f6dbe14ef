import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { cleanGivenUp } from '../../jobs/given-up.ts'
import { enqueue } from '../../jobs/queue.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

interface Past {
  attempts: number
  triedDaysAgo: number
  isLocked?: boolean
}

async function aJob(key: string, { attempts, triedDaysAgo, isLocked = false }: Past): Promise<void> {
  const job = { payload: { orgId: 'org_x', runs: [{ runId: 'run_x', epoch: 1 }] }, inMs: 3_600_000, key }
  await c.db.begin((tx) => enqueue(tx, 'runs:cancelDeadline', [job]))
  await c.db`
    update graphile_worker._private_jobs
    set
      attempts = ${attempts},
      last_error = 'no room',
      updated_at = now() - ${triedDaysAgo} * interval '1 day',
      locked_by = ${isLocked ? 'somebody' : null},
      locked_at = ${isLocked ? new Date() : null}
    where key = ${key}`
}

test('a job that failed at every attempt goes after a week, with a line in the log', async () => {
  await aJob('given-up', { attempts: 25, triedDaysAgo: 8 })
  await aJob('of-today', { attempts: 25, triedDaysAgo: 0 })
  await aJob('to-be-tried', { attempts: 24, triedDaysAgo: 8 })
  await aJob('under-way', { attempts: 25, triedDaysAgo: 8, isLocked: true })
  const lines: string[] = []
  const log = createLog({}, 'info', { write: (line) => void lines.push(line) })
  await cleanGivenUp({ db: c.db, log })
  const rows = await c.db<{ key: string }[]>`
    select key from graphile_worker.jobs where task_identifier = 'runs:cancelDeadline' order by key`
  assert.deepEqual(
    rows.map(({ key }) => key),
    ['of-today', 'to-be-tried', 'under-way'],
  )
  const shown = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(
    shown.map(({ name, job, key, error }) => [name, job, key, error]),
    [['jobs.given.up', 'runs:cancelDeadline', 'given-up', 'no room']],
  )
})
