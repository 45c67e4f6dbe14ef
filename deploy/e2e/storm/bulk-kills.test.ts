// A coordinator that is killed in the middle of a job over many runs: the job goes on, and does nothing twice.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Job } from '@windlass/shared/model/job.ts'
import type { Client } from 'windlass/client'
import { fileInstance } from '../_kit/file-instance.ts'
import { patiently } from '../_kit/responder.ts'
import { trigger } from '../_kit/runs.ts'
import { ENDED_MS } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

const RUNS = 1500
/** Nothing is executed: the agent is given no work. */
const { current, database } = fileInstance({ programs: ['healthy'] })

/** Nothing while the coordinator is away. */
const jobOf = async (client: Client, { id }: Job) => (await patiently(() => client.jobs.get({ job: id })))?.job

/**
 * Kills the coordinator when the job has done something and the org has begun another one beside it. Waits for the end
 * of both under the next coordinator.
 */
async function killUnder(job: Job): Promise<Job> {
  const instance = current()
  const { client } = instance
  const begun = await until('the first piece', async () => {
    const now = await jobOf(client, job)
    return now && (now.done > 0 || now.status !== 'running') && now
  })
  assert.equal(begun.status, 'running', 'it was over before anybody could be killed')
  const { job: beside } = await client.runs.bulkCancel({ filter: { all: true }, dryRun: true })
  process.kill((await instance.pidOf('coordinator'))!, 'SIGKILL')
  const endOf = (one: Job) => async () => {
    const now = await jobOf(client, one)
    return now && now.status !== 'running' && now
  }
  const both = [beside, job].map((one) => until('the end of a job', endOf(one), { ms: ENDED_MS }))
  return (await Promise.all(both))[1]!
}

test('a job goes on after kill -9 of its coordinator, and takes each run once', async () => {
  const { client } = current()
  const { runners } = await client.runners.list({})
  await client.runners.cordon({ runner: runners[0]!.id })
  for (let at = 0; at < RUNS; at += 100)
    await Promise.all(Array.from({ length: 100 }, () => trigger(client, 'healthy', {})))
  const { job: cancel } = await client.runs.bulkCancel({ filter: { all: true } })
  const cancelled = await killUnder(cancel)
  assert.deepEqual(
    [cancelled.status, cancelled.matched, cancelled.done, cancelled.failed],
    ['completed', RUNS, RUNS, 0],
  )
  const { db } = database()
  const [{ twice }] = await db<[{ twice: number }]>`
    select count(*)::int as twice
    from (select run_id from run_events where type = 'run.cancelled' group by run_id having count(*) > 1) each`
  assert.equal(twice, 0)

  const { job: retry } = await client.runs.bulkRetry({ filter: { status: ['cancelled'] } })
  const retried = await killUnder(retry)
  assert.deepEqual([retried.status, retried.matched, retried.done, retried.failed], ['completed', RUNS, RUNS, 0])
  const [{ runs, of }] = await db<[{ runs: number; of: number }]>`
    select count(*)::int as runs, count(distinct retry_of)::int as of from runs where retry_of is not null`
  assert.deepEqual([runs, of], [RUNS, RUNS])
})
