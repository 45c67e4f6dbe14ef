import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFake } from '../_kit/fake-service.ts'
import { runCli } from '../_kit/run-cli.ts'
import { aJob } from '../_kit/samples.ts'

const DONE = { status: 'completed', matched: 7, done: 5, failed: 2, failures: { WORKFLOW_DISABLED: 2 } } as const

test('bulk-cancel takes the flags of the list, and answers with the job', async (t) => {
  const job = aJob()
  const { url, asked } = await startFake(t, { 'runs.bulkCancel': () => ({ job }) })
  const args = ['--status', 'queued,running', '--workflow', 'hello', '--tag', 'nightly', '--reason', 'sent twice']
  const { code, stdout, stderr } = await runCli(['runs', 'bulk-cancel', ...args], { url })
  assert.deepEqual([code, stdout], [0, `${job.id}\n`], stderr)
  assert.match(stderr, new RegExp(`Next: windlass jobs get ${job.id}`))
  const filter = { status: ['queued', 'running'], workflow: 'hello', tag: 'nightly' }
  assert.deepEqual(asked[0]?.args, { org: 'acme', filter, reason: 'sent twice', dryRun: false })
})

test('a dry run waits for its count, and --wait for the end', async (t) => {
  const job = aJob({ kind: 'bulk-retry', dryRun: true })
  let looks = 0
  const { url, asked } = await startFake(t, {
    'runs.bulkRetry': ({ dryRun }) => ({ job: { ...job, dryRun } }),
    'jobs.get': () => ({ job: looks++ % 2 === 0 ? job : { ...job, ...DONE } }),
  })
  const dry = await runCli(['runs', 'bulk-retry', '--status', 'failed', '--dry-run'], { url })
  assert.deepEqual([dry.code, dry.stdout], [0, '7 runs would be taken\n'], dry.stderr)
  job.dryRun = false
  const waited = await runCli(['runs', 'bulk-retry', '--all', '--wait', '--idempotency-key', 'once'], { url })
  assert.equal(waited.stdout, `${job.id} is completed: 5 of 7, 2 failed\n`)
  assert.equal(waited.code, 1)
  assert.match(waited.stderr, /not done: 2 WORKFLOW_DISABLED/)
  const keys = asked.flatMap(({ id, args }) => (id === 'runs.bulkRetry' ? [args['idempotencyKey']] : []))
  assert.deepEqual(keys, [undefined, 'once'])
})

test('--wait answers with how the job has ended, and with why', async (t) => {
  const job = aJob()
  let end = {}
  const { url } = await startFake(t, {
    'runs.bulkCancel': ({ dryRun }) => ({ job: { ...job, dryRun } }),
    'jobs.get': () => ({ job: { ...job, matched: 500, done: 20, ...end } }),
  })
  const args = ['runs', 'bulk-cancel', '--all', '--wait']
  const endsWith = async (facts: object, code: number, said: RegExp) => {
    end = facts
    const ended = await runCli(args, { url })
    assert.equal(ended.code, code, ended.stderr)
    assert.match(ended.stderr, said)
    assert.equal((await runCli([...args, '--json'], { url })).code, code)
  }
  await endsWith({ status: 'failed', error: 'It was not done within a day.' }, 1, /^It was not done within a day\.$/m)
  await endsWith({ status: 'cancelled' }, 3, /^/)
  const ended = { RUN_ALREADY_FINISHED: 3 }
  await endsWith({ status: 'completed', failed: 3, failures: ended }, 0, /not done: 3 RUN_ALREADY_FINISHED/)
  await endsWith(
    { status: 'completed', failed: 4, failures: { ...ended, INTERNAL: 1 } },
    1,
    /3 RUN_ALREADY_FINISHED, 1 /,
  )
})

test('jobs are listed, shown and cancelled', async (t) => {
  const job = aJob(DONE)
  const { url } = await startFake(t, {
    'jobs.list': () => ({ jobs: [job], nextCursor: null }),
    'jobs.get': () => ({ job }),
    'jobs.cancel': () => ({ job: { ...job, status: 'cancelled' } }),
  })
  const list = await runCli(['jobs', 'list'], { url })
  assert.deepEqual(list.stdout.trimEnd().split('\t').slice(0, 5), [job.id, 'bulk-cancel', 'completed', '5 of 7', '2'])
  const got = await runCli(['jobs', 'get', job.id], { url })
  assert.match(
    got.stdout,
    /filter +\{"status":\["queued"\]\}[^]*done +5 of 7, 2 failed\nfailures +\{"WORKFLOW_DISABLED":2\}/,
  )
  assert.equal((await runCli(['jobs', 'cancel', job.id], { url })).stdout, `${job.id} is cancelled: 5 of 7, 2 failed\n`)
})
