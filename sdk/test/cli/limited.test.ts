import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { startFake } from '../_kit/fake-service.ts'
import { runCli } from '../_kit/run-cli.ts'
import { aRun, events } from '../_kit/samples.ts'

const limited = (retryAfterMs: number) =>
  new Fault('RATE_LIMITED', { scope: 'identity', limit: 600, windowMs: 60_000, retryAfterMs }, 'It is used up.')

test('a command that is told to come back waits as long, says so once, and goes on', async (t) => {
  const run = aRun()
  let refusals = 3
  const { url, asked } = await startFake(t, {
    'runs.cancel': () => {
      if (refusals-- > 0) throw limited(5)
      return { run }
    },
  })
  const { code, stdout, stderr } = await runCli(['runs', 'cancel', run.id], { url })
  assert.deepEqual([code, stdout], [0, `${run.id} is ${run.status}\n`], stderr)
  assert.equal(asked.filter(({ id }) => id === 'runs.cancel').length, 4)
  assert.equal(stderr.match(/It is used up/g)?.length, 1)
  assert.match(stderr, /It is used up\. Waiting/)
})

test('a command that would have to wait for longer than it may ends with the error', async (t) => {
  const { url, asked } = await startFake(t, {
    'runs.get': () => {
      throw limited(100_000)
    },
  })
  const { code, stderr } = await runCli(['runs', 'get', aRun().id], { url })
  assert.equal(code, 5)
  assert.match(stderr, /It is used up/)
  assert.match(stderr, /wait 1.+, then again: windlass runs get/)
  assert.equal(asked.length, 1)
})

test('warnings and errors of a program are told apart without colours', async (t) => {
  const run = aRun({ status: 'completed' })
  const log = events(
    ['log', 'log.stdout', { text: 'plain' }],
    ['log', 'log.stdout', { text: 'said', level: 'info' }],
    ['log', 'log.stderr', { text: 'careful', level: 'warn', fields: { at: 3 } }],
    ['log', 'log.stderr', { text: 'broken\nhere', level: 'error' }],
  )
  const { url } = await startFake(t, {
    'runs.get': () => ({ run }),
    'runs.events': () => ({ events: log, done: true }),
  })
  const { stdout } = await runCli(['logs', run.id], { url })
  const lines = stdout.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => line.slice(line.indexOf('│'))),
    ['│ plain', '│ said', '│ warn: careful {"at":3}', '│ error: broken', '│ here'],
  )
})

test('runs get has how the attempts before ended, the last three of them', async (t) => {
  const run = aRun({ attempt: 6, status: 'failed' })
  const restarts = [1, 2, 3, 4, 5].map((lostAttempt) => [
    'lifecycle',
    'run.restarted',
    {
      attempt: lostAttempt + 1,
      lostAttempt,
      ...(lostAttempt === 5
        ? { reason: 'it threw', error: { code: 'BOOM', message: 'no such host' } }
        : { reason: 'its process was ended by SIGKILL' }),
    },
  ])
  const { url, asked } = await startFake(t, {
    'runs.get': () => ({ run }),
    'runs.events': () => ({ events: events(...(restarts as Parameters<typeof events>)), done: true }),
  })
  const { code, stdout, stderr } = await runCli(['runs', 'get', run.id], { url })
  assert.equal(code, 0, stderr)
  assert.match(stdout, /attempt 5 +at .*: it threw: BOOM: no such host\n/)
  assert.match(stdout, /attempt 3 +at .*: its process was ended by SIGKILL\n/)
  assert.doesNotMatch(stdout, /attempt 2 /)
  assert.match(stdout, new RegExp(`2 earlier.*windlass logs ${run.id}`))
  assert.deepEqual(asked.at(-1)?.args['channels'], ['lifecycle'])
})
