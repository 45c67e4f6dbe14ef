import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { newId } from '@windlass/shared/ids.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { startFake } from '../_kit/fake-service.ts'
import { jsonLines, runCli } from '../_kit/run-cli.ts'
import { aRun, aWhy, anInput, events, sendSseHead, sendStream, SSE_DONE, sseText } from '../_kit/samples.ts'

test('runs why tells the answer first, then each cause, then every runner', async (t) => {
  const runner = { id: newId('rnr'), name: 'east-1', takes: false, reason: 'is offline: last heard of 5 min ago' }
  const why = aWhy({ runners: [runner] })
  const { url } = await startFake(t, { 'runs.why': () => ({ why }) })
  const { code, stdout, stderr } = await runCli(['runs', 'why', why.run], { url })
  assert.equal(code, 0, stderr)
  const lines = stdout.trimEnd().split('\n')
  assert.match(lines[0]!, new RegExp(`^${why.run} is queued since 2026-11-\\d\\d`))
  assert.equal(lines[2], 'NO_RUNNER  The pool `default` has no runner.')
  assert.match(lines[3]!, /^ {2}since 2026-11/)
  assert.equal(lines[4], '  Whoever may add a machine.')
  assert.equal(lines.at(-1), [runner.id, 'east-1', 'no', runner.reason].join('\t'))
  assert.deepEqual(JSON.parse((await runCli(['runs', 'why', why.run, '--json'], { url })).stdout), { why })
})

test('runs why takes a workflow for its newest run', async (t) => {
  const run = aRun()
  const { url, asked } = await startFake(t, {
    'runs.list': () => ({ runs: [run], nextCursor: null }),
    'runs.why': () => ({ why: aWhy({ run: run.id }) }),
  })
  const { code, stderr } = await runCli(['runs', 'why', 'hello'], { url })
  assert.equal(code, 0, stderr)
  assert.deepEqual(
    asked.map(({ args }) => args),
    [{ workflow: 'hello', deleted: false, limit: 1, org: 'acme' }, { run: run.id }],
  )
})

test('a blocked run is shown as that in the list and at the end of its log', async (t) => {
  const blocked = { code: 'REPLAY_MISMATCH', message: 'It differs.', expected: 'a', received: 'b', at: '' } as const
  const run = aRun({ status: 'sleeping', blocked })
  const { url, asked } = await startFake(t, {
    'runs.list': () => ({ runs: [run], nextCursor: null }),
    'runs.get': () => ({ run }),
    'runs.events': () => ({ events: [], done: false }),
  })
  assert.match((await runCli(['runs', 'list', '--blocked'], { url })).stdout, /sleeping \(blocked\)/)
  assert.equal((asked[0]!.args as { blocked?: boolean }).blocked, true)
  const { stderr } = await runCli(['logs', run.id], { url })
  assert.match(stderr, new RegExp(`It is blocked.*Next: windlass runs why ${run.id}`))
})

test('runs why names the process of a waiting run, the place in the program and the runs that hold it', async (t) => {
  const holder = newId('run')
  const why = aWhy({
    status: 'awaiting_input',
    process: { place: 'parked', runner: { id: newId('rnr'), name: 'east-1' } },
    causes: [
      { code: 'INPUT', message: 'It asks: Ship it?', since: 0, until: 1, change: 'Anybody.', at: 'index.ts:12:9' },
      {
        code: 'CONCURRENCY_LIMIT',
        message: 'One is under way.',
        since: null,
        until: null,
        change: 'x',
        runIds: [holder],
      },
    ],
  })
  const { url } = await startFake(t, { 'runs.why': () => ({ why }) })
  const { stdout } = await runCli(['runs', 'why', why.run], { url })
  assert.match(stdout, /is awaiting input since/)
  assert.match(stdout, /Its process is parked, without a slot, on east-1/)
  assert.match(stdout, /INPUT {2}It asks: Ship it\?\n {2}since .*, until .*, at index\.ts:12:9\n {2}Anybody\./)
  assert.match(stdout, new RegExp(`runs: ${holder}`))
})

test('runs why says how a run changed hands', async (t) => {
  const at = Date.UTC(2026, 10, 21, 14, 0, 0)
  const loss = { at, attempt: 1, lastAckAt: at - 5000, lastRenewalAt: null, lengthenedMs: null }
  const runner = { id: newId('rnr'), name: 'east-1' }
  const why = aWhy({
    losses: [
      { ...loss, runner, what: 'network', reason: 'its agent was not heard of', lengthenedMs: 302_000 },
      { ...loss, runner: null, what: 'program', reason: 'it was killed' },
    ],
  })
  const { url } = await startFake(t, { 'runs.why': () => ({ why }) })
  const lines = (await runCli(['runs', 'why', why.run], { url })).stdout.trimEnd().split('\n')
  const [first, second] = lines.slice(-2).map((line) => line.split('\t'))
  assert.deepEqual(first!.slice(1, 4), ['1', 'east-1', 'the connection'])
  const reason = 'its agent was not heard of (after its lease was lengthened by 5 min 2 s)'
  assert.deepEqual([first![5], first![6]], ['', reason])
  assert.deepEqual(second!.slice(1, 4), ['1', '', 'its process'])
})

test('runs children lists, and runs restart prints the attempt that begins', async (t) => {
  const parent = aRun()
  const child = aRun({ parentRunId: parent.id, status: 'completed' })
  const { url, asked, answers } = await startFake(t, {
    'runs.children': () => ({ runs: [child], nextCursor: 'abc' }),
    'runs.restart': () => ({ run: { ...parent, attempt: 2 } }),
  })
  const listed = await runCli(['runs', 'children', parent.id, '--status', 'completed'], { url })
  assert.deepEqual(listed.stdout.split('\t').slice(0, 3), [child.id, 'hello@2', 'completed'])
  assert.match(listed.stderr, new RegExp(`More: windlass runs children ${parent.id} --status completed --cursor abc`))
  assert.deepEqual(asked[0]?.args, { run: parent.id, status: ['completed'], limit: 50 })
  assert.equal((await runCli(['runs', 'restart', parent.id], { url })).stdout, `${parent.id} is queued, attempt 2\n`)
  answers['runs.restart'] = () => {
    throw new Fault('RUN_NOT_BLOCKED')
  }
  const refused = await runCli(['runs', 'restart', parent.id], { url })
  assert.deepEqual([refused.code, /Next: windlass runs why/.test(refused.stderr)], [1, true])
})

test('runs get tells what a run waits for, and why a blocked one is blocked', async (t) => {
  const blocked = {
    code: 'REPLAY_MISMATCH',
    message: 'The replay met something else.',
    expected: 'a',
    received: 'b',
    at: '',
  } as const
  const run = aRun({ status: 'sleeping', waiting: { for: 'sleep', since: 0, until: 1 }, blocked })
  const { url } = await startFake(t, { 'runs.get': () => ({ run }) })
  const { stdout } = await runCli(['runs', 'get', run.id], { url })
  assert.match(stdout, /waits for +its sleep, since .* is due at .* Next: windlass runs why run_/)
  assert.match(stdout, /blocked +The replay met something else\./)
})

test('following goes on through every wait to the end, and tells of it on the way', async (t) => {
  const log = events(
    ['lifecycle', 'run.queued'],
    ['lifecycle', 'run.running', { attempt: 1 }],
    ['lifecycle', 'run.sleeping', { waitsFor: 'sleep' }],
    ['lifecycle', 'run.resumed', { attempt: 1, runner: 'east-1' }],
    ['lifecycle', 'run.awaiting_input', { waitsFor: 'input' }],
    ['lifecycle', 'run.blocked', { message: 'm', expected: 'sleep(1)', received: 'sleep(2)', at: 'index.ts:3:1' }],
    ['lifecycle', 'run.restarted', { attempt: 2, reason: 'somebody asked for it' }],
    ['lifecycle', 'run.waiting_for_child', { waitsFor: 'child' }],
    ['lifecycle', 'run.resumed', { attempt: 2 }],
    ['lifecycle', 'run.completed'],
  )
  const run = aRun({ status: 'sleeping' })
  const question = anInput({ prompt: 'Ship it?' })
  const { url } = await startFake(t, {
    'runs.trigger': () => ({ run }),
    'runs.get': () => ({ run: { ...run, status: 'completed', finishedAt: run.createdAt } }),
    'runs.stream': (args, response) => sendStream(response, log, args),
    'runs.output': () => ({ output: 1 }),
    'inputs.list': () => ({ inputs: [question], nextCursor: null }),
  })
  const { code, stdout, stderr } = await runCli(['run', 'hello'], { url })
  assert.deepEqual([code, stdout], [0, '1\n'], stderr)
  for (const text of ['sleeping', 'resumed  east-1', 'awaiting input', 'waiting for child', 'resumed  attempt 2'])
    assert.ok(stderr.includes(text), `${text} in ${stderr}`)
  assert.ok(stderr.includes(`? Ship it?\n  windlass inputs respond ${question.id} `), stderr)
  assert.match(stderr, /blocked {2}recorded sleep\(1\), came sleep\(2\) at index\.ts:3:1/)
  const json = await runCli(['runs', 'events', '-f', run.id, '--json'], { url })
  assert.equal(jsonLines(json.stdout).length, log.length + 1)
})

test('a pipe is told each state once, and in a backoff that the next attempt has to wait', async (t) => {
  const log = events(
    ['lifecycle', 'run.queued'],
    ['lifecycle', 'run.sleeping', { waitsFor: 'sleep' }],
    ['lifecycle', 'run.restarted', { attempt: 2, reason: 'it threw', delayMs: 20_000 }],
    ['lifecycle', 'run.queued', { attempt: 2 }],
    ['lifecycle', 'run.completed'],
  )
  const run = aRun({ status: 'queued' })
  const slowly = async (response: ServerResponse) => {
    sendSseHead(response)
    for (const event of log) {
      response.write(sseText(event))
      // Longer than it takes until a wait is put into words.
      await pause(450)
    }
    response.end(SSE_DONE)
  }
  const { url } = await startFake(t, {
    'runs.trigger': () => ({ run }),
    'runs.get': () => ({ run: { ...run, status: 'completed', finishedAt: run.createdAt } }),
    'runs.output': () => ({ output: 1 }),
    'runs.stream': (_, response) => void slowly(response),
  })
  const { stderr } = await runCli(['run', 'hello'], { url })
  const lines = stderr.split('\n').map((line) => line.replace(/^[\d:.]+ {2}/, ''))
  assert.equal(lines.filter((line) => line === 'sleeping').length, 1, stderr)
  assert.ok(lines.includes('the next attempt begins in 20 s'), stderr)
})
