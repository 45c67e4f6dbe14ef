import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import type { Channel } from '@windlass/shared/model/event.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import { flagFields } from '../../cli/fields.ts'
import { startFake } from '../_kit/fake-service.ts'
import { jsonLines, runCli } from '../_kit/run-cli.ts'
import { aRun, aVersion, aWorkflow, events, sendStream } from '../_kit/samples.ts'

test('runs list is a line per run for a pipe, and the answer itself with --json', async (t) => {
  const answer = { runs: [aRun({ status: 'running' }), aRun()], nextCursor: 'abc' }
  const { url, asked } = await startFake(t, { 'runs.list': () => answer })
  const { code, stdout, stderr } = await runCli(
    ['runs', 'list', '--status', 'queued,running', '--status', 'failed', '--limit', '2'],
    { url },
  )
  assert.equal(code, 0, stderr)
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t').slice(0, 3)),
    [
      [answer.runs[0]?.id, 'hello@2', 'running'],
      [answer.runs[1]?.id, 'hello@2', 'queued'],
    ],
  )
  assert.match(stderr, /More: windlass runs list --status queued,running --status failed --limit 2 --cursor abc/)
  assert.deepEqual(asked[0]?.args, { org: 'acme', status: ['queued', 'running', 'failed'], deleted: false, limit: 2 })
  assert.deepEqual(JSON.parse((await runCli(['--json', 'runs', 'list'], { url })).stdout), answer)
})

test('runs get, input, output, cancel and retry print what they are about', async (t) => {
  const run = aRun({ status: 'failed', error: { code: 'PROGRAM_FAILED', message: 'boom' } })
  const { url, asked } = await startFake(t, {
    'runs.get': () => ({ run }),
    'runs.input': () => ({ input: { a: 1 } }),
    'runs.output': () => ({ output: null }),
    'runs.cancel': () => ({ run: { ...run, status: 'cancelled' } }),
    'runs.retry': () => ({ run: aRun({ retryOf: run.id }) }),
  })
  assert.match((await runCli(['runs', 'get', run.id], { url })).stdout, /status +failed\nerror +PROGRAM_FAILED: boom/)
  assert.equal((await runCli(['runs', 'input', run.id], { url })).stdout, '{"a":1}\n')
  assert.equal((await runCli(['runs', 'output', run.id, '--json'], { url })).stdout, '{"output":null}\n')
  assert.equal(
    (await runCli(['runs', 'cancel', run.id, '--reason', 'typo'], { url })).stdout,
    `${run.id} is cancelled\n`,
  )
  const retry = ['runs', 'retry', run.id, '--workflow-version', '3', '--idempotency-key', 'order-7']
  assert.match((await runCli(retry, { url })).stdout, /^run_\w{26}\n$/)
  assert.deepEqual(
    asked.slice(-2).map((each) => each.args),
    [
      { run: run.id, reason: 'typo' },
      { run: run.id, version: 3, idempotencyKey: 'order-7' },
    ],
  )
})

test('runs logs reads every page and prints the text alone', async (t) => {
  const lines = events(
    ...Array.from({ length: 1500 }, (_, i): [Channel, string, { text: string }] => [
      'log',
      'log.stdout',
      { text: `line ${i}` },
    ]),
  )
  const { url, asked } = await startFake(t, {
    'runs.events': ({ since, limit }) => {
      const page = lines.filter((event) => event.cursor > Number(since)).slice(0, Number(limit))
      return { events: page, done: page.at(-1)?.cursor === 1500 }
    },
  })
  const { code, stdout } = await runCli(['runs', 'logs', aRun().id], { url })
  assert.equal(code, 0)
  assert.equal(stdout, lines.map((event) => `${String(event.data['text'])}\n`).join(''))
  assert.deepEqual(
    asked.map((each) => each.args['since']),
    [0, 1000],
  )
})

test('runs logs -f goes on to the end, and its exit code tells how the run ended', async (t) => {
  const log = events(
    ['log', 'log.stdout', { text: 'one' }],
    ['log', 'log.stderr', { text: 'two' }],
    ['lifecycle', 'run.failed'],
  )
  const run = aRun({ status: 'failed' })
  const { url } = await startFake(t, {
    'runs.get': () => ({ run }),
    'runs.stream': (args, response) => sendStream(response, log, args),
  })
  const { code, stdout } = await runCli(['runs', 'logs', '-f', run.id], { url })
  assert.deepEqual([code, stdout], [1, 'one\ntwo\n'])
  const followed = await runCli(['runs', 'logs', '-f', run.id, '--json'], { url })
  assert.deepEqual(jsonLines(followed.stdout), [log[0], log[1], { run }])
})

test('runs events prints events readably', async (t) => {
  const log = events(['lifecycle', 'run.queued'], ['phase', 'phase', { name: 'greet' }])
  const { url, asked } = await startFake(t, { 'runs.events': () => ({ events: log, done: true }) })
  const { stdout } = await runCli(['runs', 'events', aRun().id, '--channels', 'lifecycle,phase'], { url })
  assert.match(stdout, /^\d\d:\d\d:\d\d\.000 {2}queued\n\d\d:\d\d:\d\d\.001 {2}▸ greet\n$/)
  assert.deepEqual(asked[0]?.args['channels'], ['lifecycle', 'phase'])
})

test('workflows get shows the schemas in one line each', async (t) => {
  const { url } = await startFake(t, {
    'workflows.get': () => ({ workflow: aWorkflow(), version: aVersion(), files: [{ path: 'index.ts', content: '' }] }),
  })
  const { stdout } = await runCli(['workflows', 'get', 'hello'], { url })
  assert.match(stdout, /input +\{ name: string \}\noutput +string/)
})

test('an operation without a hand-made command is there by its row, with flags decoded by its schema', async (t) => {
  const answer = { version: aVersion({ version: 3 }), files: [] }
  const { url, asked } = await startFake(t, {
    'workflows.getVersion': () => answer,
    'service.ready': () => ({ status: 'ready' }),
  })
  const { code, stdout, stderr } = await runCli(['workflows', 'get-version', 'hello', '3', '--json'], { url })
  assert.equal(code, 0, stderr)
  assert.deepEqual(JSON.parse(stdout), answer)
  assert.equal(asked[0]?.args['version'], 3)
  assert.deepEqual(JSON.parse((await runCli(['service', 'ready'], { url })).stdout), { status: 'ready' })
})

test('no flag of an operation hides a global one', () => {
  const global = ['url', 'api-key', 'session', 'org', 'profile', 'json', 'version', 'help', 'follow']
  const flags = allOps.flatMap((row) => flagFields(row)).map((field) => field.flag)
  assert.deepEqual(
    flags.filter((flag) => global.includes(flag)),
    [],
  )
})

test('pools token takes the name of a pool and prints the token alone', async (t) => {
  const { url, asked } = await startFake(t, {
    'pools.createToken': () => ({ registrationToken: { token: 'wlr_x', uses: 2, expiresAt: 0 } }),
  })
  const { stdout, stderr } = await runCli(['pools', 'token', 'builders', '--reusable', '--uses', '2'], { url })
  assert.equal(stdout, 'wlr_x\n')
  // The address that we reach the service at would be the joining machine itself.
  const port = new URL(url).port
  assert.ok(
    stderr.includes(`windlass agent start --url http://<address of this machine>:${port} --token wlr_x`),
    stderr,
  )
  assert.ok(
    stderr.includes(`curl -fsSL http://<address of this machine>:${port}/install.sh | sh -s -- --token wlr_x`),
    stderr,
  )
  assert.deepEqual(asked[0]?.args, { pool: 'builders', reusable: true, uses: 2, ttlMs: 900_000 })
})

test('each refusal has its exit code and names the next step', async (t) => {
  const { url, answers } = await startFake(t)
  const next = async (args: string[], env: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await runCli(args, { url, env })
    assert.equal(stdout, '')
    assert.match(stderr, /\nNext: \S/)
    return code
  }
  const id = aRun().id
  assert.equal(await next(['runs', 'get', id]), 4)
  assert.equal(await next(['runs', 'get', id], { WINDLASS_API_KEY: 'wl_wrong' }), 4)
  assert.equal(await next(['runs', 'get', 'no-run-id']), 2)
  assert.equal(await next(['runs', 'list', '--limit', 'many']), 2)
  assert.equal(await next(['runs', 'lst']), 2)
  assert.equal(await next(['runs', 'get', id], { WINDLASS_URL: 'http://127.0.0.1:9' }), 5)
  answers['runs.cancel'] = () => {
    throw new Fault('RUN_ALREADY_FINISHED')
  }
  assert.equal(await next(['runs', 'cancel', id]), 1)
})

test('with --json wrong usage is an envelope like that of the API, without words for people around it', async () => {
  const { code, stdout, stderr } = await runCli(['runs', 'list', '--nonsense', '--json'])
  assert.deepEqual([code, stdout], [2, ''])
  assert.deepEqual(JSON.parse(stderr), { error: { code: 'USAGE', message: "unknown option '--nonsense'" } })
})
