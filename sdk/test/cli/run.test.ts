import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { startFake } from '../_kit/fake-service.ts'
import type { FakeService } from '../_kit/fake-service.ts'
import { folderOf, jsonLines, runCli } from '../_kit/run-cli.ts'
import { aRun, events, sendSseHead, sendStream, sseText } from '../_kit/samples.ts'

const LOG = events(
  ['lifecycle', 'run.queued'],
  ['lifecycle', 'run.running'],
  ['phase', 'phase', { name: 'greet' }],
  ['log', 'log.stdout', { text: 'hello from the program' }],
  ['output', 'output', { output: { greeting: 'Hello, Ada!' } }],
  ['lifecycle', 'run.completed'],
)

/** A service on which every run ends as told. */
async function serviceWith(
  t: TestContext,
  end: Partial<Run>,
  log: RunEvent[] = LOG,
): Promise<FakeService & { run: Run }> {
  const run = aRun()
  const ended = { ...run, finishedAt: run.createdAt + 1234, ...end }
  const fake = await startFake(t, {
    'runs.trigger': () => ({ run }),
    'runs.stream': (args, response) => sendStream(response, log, args),
    'runs.get': () => ({ run: ended }),
    'runs.output': () => ({ output: { greeting: 'Hello, Ada!' } }),
  })
  return { ...fake, run }
}

test('a completed run ends with 0: the output alone on stdout, the events on stderr', async (t) => {
  const { url, asked } = await serviceWith(t, { status: 'completed' })
  const args = [
    'run',
    'hello',
    '--input',
    '{"name":"Ada"}',
    '--tag',
    'a',
    '--tag',
    'b',
    '--priority',
    '-5',
    '--environment',
    'prod',
    '--delay',
    '90s',
    '--idempotency-key',
    'order-7',
  ]
  const { code, stdout, stderr } = await runCli(args, { url })
  assert.equal(code, 0, stderr)
  assert.deepEqual(JSON.parse(stdout), { greeting: 'Hello, Ada!' })
  assert.match(stderr, /queued[^]*running[^]*▸ greet[^]*completed[^]*✔ hello completed in 1\.2 s/)
  assert.doesNotMatch(stderr, /hello from the program/)
  assert.deepEqual(asked[0]?.args, {
    org: 'acme',
    workflow: 'hello',
    input: { name: 'Ada' },
    tags: ['a', 'b'],
    priority: -5,
    delayMs: 90_000,
    idempotencyKey: 'order-7',
    environment: 'prod',
  })
})

test('--logs shows what the program prints', async (t) => {
  const { url } = await serviceWith(t, { status: 'completed' })
  const { code, stderr } = await runCli(['run', 'hello', '--logs'], { url })
  assert.equal(code, 0, stderr)
  assert.match(stderr, /│ hello from the program/)
})

test('--json prints every event and at last the run, a document per line, and nothing else', async (t) => {
  const { url, run } = await serviceWith(t, { status: 'completed' })
  const { code, stdout, stderr } = await runCli(['run', 'hello', '--json', '--logs'], { url })
  assert.equal(code, 0, stderr)
  const lines = jsonLines(stdout)
  assert.deepEqual(lines.slice(0, -1), LOG)
  assert.equal((lines.at(-1) as { run: Run }).run.id, run.id)
  assert.equal(stderr, '')
})

test('a failed run ends with 1, says why and what to type next', async (t) => {
  const error = { code: 'PROGRAM_FAILED', message: 'boom' }
  const log = events(['lifecycle', 'run.queued'], ['lifecycle', 'run.failed', { error }])
  const { url, run } = await serviceWith(t, { status: 'failed', error }, log)
  const { code, stdout, stderr } = await runCli(['run', 'hello'], { url })
  assert.equal(code, 1)
  assert.equal(stdout, '')
  assert.match(stderr, new RegExp(`✖ hello failed in 1.2 s: PROGRAM_FAILED: boom\nNext: windlass logs ${run.id}`))
})

test('a cancelled run ends with 3', async (t) => {
  const { url } = await serviceWith(
    t,
    { status: 'cancelled' },
    events(['lifecycle', 'run.queued'], ['lifecycle', 'run.cancelled']),
  )
  assert.equal((await runCli(['run', 'hello'], { url })).code, 3)
})

test('--no-follow prints the id, or with --json the answer as it came', async (t) => {
  const { url, run, asked } = await serviceWith(t, {})
  const { code, stdout: id, stderr } = await runCli(['run', 'hello', '--no-follow'], { url })
  assert.deepEqual([code, id], [0, `${run.id}\n`])
  // On a busy machine the answer may take so long that the command says what it waits for.
  assert.match(stderr, /^(starting hello\n)?$/)
  const { stdout } = await runCli(['run', 'hello', '--no-follow', '--json'], { url })
  assert.deepEqual(JSON.parse(stdout), { run })
  assert.deepEqual(new Set(asked.map((each) => each.id)), new Set(['runs.trigger']))
})

test('input comes from a file and from standard input', async (t) => {
  const { url, asked } = await serviceWith(t, { status: 'completed' })
  const cwd = await folderOf(t, { 'input.json': '\uFEFF{"from":"a file"}' })
  await runCli(['run', 'hello', '--no-follow', '--input', '@input.json'], { url, cwd })
  await runCli(['run', 'hello', '--no-follow', '-i', '-'], { url, input: '["from","stdin"]' })
  await runCli(['run', 'hello', '--no-follow'], { url })
  assert.deepEqual(
    asked.map(({ args }) => args['input']),
    [{ from: 'a file' }, ['from', 'stdin'], undefined],
  )
})

test('what cannot be used as input ends with 2, says why, and starts no run', async (t) => {
  const { url, asked } = await serviceWith(t, {})
  for (const [given, why] of [
    ['{oops', 'is not JSON'],
    ['@missing.json', 'cannot read missing.json'],
  ] as const) {
    const { code, stdout, stderr } = await runCli(['run', 'hello', '--input', given], { url })
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.ok(stderr.includes(why) && stderr.includes('Next: '), stderr)
  }
  assert.equal(asked.length, 0)
})

test('an input that the workflow does not take ends with 2 and names the field', async (t) => {
  const { url, answers } = await serviceWith(t, {})
  answers['runs.trigger'] = () => {
    throw new Fault('VALIDATION_FAILED', { path: 'input.name' }, 'must be string')
  }
  const plain = await runCli(['run', 'hello', '--input', '{}'], { url })
  assert.equal(plain.code, 2)
  assert.match(plain.stderr, /error: input\.name: must be string\nNext: windlass workflows get/)
  const { code, stdout, stderr } = await runCli(['run', 'hello', '--input', '{}', '--json'], { url })
  assert.deepEqual([code, stdout], [2, ''])
  assert.equal((JSON.parse(stderr) as { error: { code: string } }).error.code, 'VALIDATION_FAILED')
})

test('Ctrl-C ends with 130, leaves the run alone and says how to go on', async (t) => {
  const { url, answers, asked, run } = await serviceWith(t, {})
  answers['runs.stream'] = (_args, response) => {
    sendSseHead(response)
    response.write(sseText(LOG[0]!))
  }
  const { code, stderr } = await runCli(['run', 'hello'], { url, interruptAt: 'queued' })
  assert.equal(code, 130)
  assert.match(stderr, new RegExp(`windlass logs -f ${run.id} .*windlass runs cancel ${run.id}`))
  assert.ok(!asked.some((each) => each.id === 'runs.cancel'))
})

test('--timeout ends with 5 while the run goes on; a wait is told on stderr', async (t) => {
  const { url, answers } = await serviceWith(t, {})
  answers['runs.stream'] = (_args, response) => {
    sendSseHead(response)
    setTimeout(() => response.write(sseText(LOG[2]!)), 1500)
  }
  const { code, stderr } = await runCli(['run', 'hello', '--timeout', '4s'], { url })
  assert.equal(code, 5)
  // A busy machine is told first that the service is slow to answer.
  assert.match(stderr, /^queued, waiting for a runner\n[\d:.]+ {2}▸ greet\n[^]*has not ended in time/m)
  assert.equal((await runCli(['run', 'hello', '--timeout', 'soon'], { url })).code, 2)
})

test('a delay that is no length of time is refused before anything is started', async (t) => {
  const { url, asked } = await serviceWith(t, { status: 'completed' })
  const { code, stderr } = await runCli(['run', 'hello', '--delay', 'soon'], { url })
  assert.notEqual(code, 0)
  assert.match(stderr, /--delay takes a length of time, not `soon`/)
  assert.deepEqual(asked, [])
})
