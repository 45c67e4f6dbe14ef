import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { answerAs, FOREIGN } from '@windlass/shared/test/_kit/foreign.ts'
import { Failure } from '../../cli/failure.ts'
import { tellRun } from '../../cli/follow-run.ts'
import { Session } from '../../cli/session.ts'
import type { Answerer } from '../_kit/fake-service.ts'
import { KEY, ORG, SESSION, startFake } from '../_kit/fake-service.ts'
import { runCli } from '../_kit/run-cli.ts'
import { aJob, aRun, events, sendStream } from '../_kit/samples.ts'

const AGAIN = /again: windlass|try again/

/** Refuses so many times, then answers. */
function after(refusals: number, answer: Answerer): Answerer {
  return (...asked) => {
    if (refusals-- > 0) throw new Fault('UNAVAILABLE')
    return answer(...asked)
  }
}

const never: Answerer = () => {
  throw new Fault('UNAVAILABLE')
}

const hidden: Answerer = () => {
  throw new Fault('FORBIDDEN')
}

/** A service on which a run completes at once. */
async function completing(t: TestContext) {
  const run = aRun()
  const log = events(['lifecycle', 'run.queued'], ['lifecycle', 'run.completed'])
  const fake = await startFake(t, {
    'runs.trigger': () => ({ run }),
    'runs.retry': () => ({ run }),
    'runs.stream': (args, response) => sendStream(response, log, args),
    'runs.get': () => ({ run: { ...run, status: 'completed', finishedAt: run.createdAt + 1 } }),
    'runs.output': () => ({ output: 'paid' }),
  })
  return { ...fake, run, starts: () => fake.asked.filter(({ id }) => id === 'runs.trigger').length }
}

test('an outage behind the end of a run is waited out, as one amid its events', async (t) => {
  const { url, answers, starts } = await completing(t)
  answers['runs.get'] = after(2, answers['runs.get']!)
  answers['runs.output'] = after(2, answers['runs.output']!)
  const { code, stdout, stderr } = await runCli(['run', 'hello'], { url })
  assert.deepEqual([code, stdout], [0, '"paid"\n'], stderr)
  assert.match(stderr, /connection lost \(The service cannot reach its database right now/)
  assert.equal(starts(), 1)
})

test('a page of a proxy amid the events of a run, and behind its end, is waited out as well', async (t) => {
  const { url, answers, starts } = await completing(t)
  for (const row of ['runs.stream', 'runs.get', 'runs.output']) {
    let isAway = true
    const answer = answers[row]!
    answers[row] = (args, response, request) => {
      if (!isAway) return answer(args, response, request)
      isAway = false
      return answerAs(response, FOREIGN[0]!)
    }
  }
  const { code, stdout, stderr } = await runCli(['run', 'hello'], { url })
  assert.deepEqual([code, stdout], [0, '"paid"\n'], stderr)
  assert.equal(stderr.match(/connection lost \(.* answered 404 with something that is not Windlass/g)?.length, 3)
  assert.equal(starts(), 1)
})

test('what cannot be read of a run that was started is told with the run, and never to start it again', async (t) => {
  const { url, answers, run } = await completing(t)
  for (const [row, what, next] of [
    ['runs.output', 'has completed, but its output could not be read', `windlass runs output ${run.id}`],
    ['runs.get', 'has ended, but how could not be read', `windlass logs -f ${run.id}`],
    ['runs.stream', 'which that does not end', `windlass logs -f ${run.id}`],
  ] as const) {
    answers[row] = hidden
    for (const args of [
      ['run', 'hello'],
      ['runs', 'retry', run.id, '-f'],
    ]) {
      const { code, stderr } = await runCli(args, { url })
      assert.equal(code, 4, stderr)
      assert.ok(stderr.includes(what) && stderr.includes(`Next: ${next}\n`), stderr)
    }
  }
  const { stderr } = await runCli(['run', 'hello', '--json'], { url })
  const { error } = JSON.parse(stderr) as { error: { code: string; detail: { run: string } } }
  assert.deepEqual([error.code, error.detail.run], ['FORBIDDEN', run.id])
})

test('an outage that outlasts all patience leaves the run, and says how to go on with it', async (t) => {
  const { url, answers, run } = await completing(t)
  const session = new Session({ url, apiKey: KEY, org: ORG })
  const { signal } = new AbortController()
  for (const row of ['runs.output', 'runs.get', 'runs.stream']) {
    answers[row] = never
    await assert.rejects(tellRun(session, run, { patienceMs: 1 }, signal), (error) => {
      assert.ok(error instanceof Failure, String(error))
      assert.equal(error.exit, 5)
      assert.doesNotMatch(error.message, AGAIN)
      assert.match(error.message, new RegExp(`${run.id}.*cannot reach its database`))
      assert.match(error.next, new RegExp(`^windlass (logs -f|runs output) ${run.id}$`))
      return true
    })
  }
})

test('a start without an answer may have been done: where that shows is named, not the same command', async (t) => {
  const { url, answers } = await startFake(t)
  const lost: Answerer = (_args, response) => void response.destroy()
  for (const answer of [never, lost])
    for (const [row, args, look] of [
      ['runs.trigger', ['run', 'hello'], 'windlass runs list'],
      ['runs.retry', ['runs', 'retry', aRun().id], 'windlass runs list --trigger retry'],
      ['runs.bulkRetry', ['runs', 'bulk-retry', '--all'], 'windlass jobs list'],
    ] as const) {
      answers[row] = answer
      const { code, stderr } = await runCli([...args], { url })
      assert.equal(code, 5)
      assert.ok(stderr.includes(`Next: ${look} shows whether it was done all the same`), stderr)
      assert.doesNotMatch(stderr, AGAIN)
    }
  // What only reads may be sent again, and so may what was never sent.
  answers['runs.get'] = never
  assert.match((await runCli(['runs', 'get', aRun().id], { url })).stderr, AGAIN)
  assert.match((await runCli(['run', 'hello'], { url: 'http://127.0.0.1:1' })).stderr, /Next: `npm start`/)
})

test('a key or token that nobody has seen is named where it shows, and how it is ended', async (t) => {
  const { url } = await startFake(t, { 'keys.create': never, 'pools.createToken': never })
  for (const [args, look, end] of [
    [['keys', 'create', 'ci', '--role', 'member'], 'windlass keys list', 'windlass keys revoke <key>'],
    [['pools', 'token', 'default'], 'windlass pools tokens default', 'windlass pools revoke-token <token>'],
  ] as const) {
    const { code, stderr } = await runCli([...args], { url, env: { WINDLASS_API_KEY: SESSION } })
    assert.equal(code, 5)
    assert.ok(stderr.includes(`Next: ${look} shows whether it was done all the same; ${end} ends one`), stderr)
    assert.doesNotMatch(stderr, AGAIN)
  }
})

test('a bulk job is waited for through an outage; what ends the waiting names the job', async (t) => {
  const job = aJob()
  const done = () => ({ job: { ...job, status: 'completed' } })
  const { url, answers } = await startFake(t, { 'runs.bulkRetry': () => ({ job }), 'jobs.get': after(2, done) })
  const args = ['runs', 'bulk-retry', '--all', '--wait']
  const waited = await runCli(args, { url })
  assert.equal(waited.code, 0, waited.stderr)
  answers['jobs.get'] = hidden
  const { code, stderr } = await runCli(args, { url })
  assert.equal(code, 4)
  assert.match(stderr, new RegExp(`Stopped waiting for ${job.id}, .*\\nNext: windlass jobs get ${job.id}\\n`))
})
