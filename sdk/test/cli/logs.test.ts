import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFake } from '../_kit/fake-service.ts'
import { jsonLines, runCli } from '../_kit/run-cli.ts'
import { SSE_DONE, aRun, events, sendSseHead, sendStream, sseText } from '../_kit/samples.ts'

const LOG = events(
  ['lifecycle', 'run.queued'],
  ['phase', 'phase', { name: 'greet' }],
  ['log', 'log.stdout', { text: 'hello' }],
  ['lifecycle', 'run.failed'],
)

test('logs shows what happened, what was printed included, of the newest run of a workflow too', async (t) => {
  const run = aRun({ status: 'failed' })
  const { url, asked } = await startFake(t, {
    'runs.list': () => ({ runs: [run], nextCursor: null }),
    'runs.get': () => ({ run }),
    'runs.events': () => ({ events: LOG, done: true }),
  })
  const shown = await runCli(['logs', run.id], { url })
  assert.equal(shown.code, 0, shown.stderr)
  assert.match(shown.stdout, /queued\n.*▸ greet\n.*│ hello\n.*failed\n$/)
  assert.deepEqual(asked.at(-1)?.args['channels'], ['lifecycle', 'phase', 'output', 'log'])
  const newest = await runCli(['logs', 'hello', '--channels', 'log'], { url })
  assert.match(newest.stderr, new RegExp(`${run.id} of hello, version 2`))
  assert.deepEqual(asked.at(-2)?.args, { org: 'acme', workflow: 'hello', deleted: false, limit: 1 })
  assert.deepEqual(asked.at(-1)?.args['channels'], ['log'])
})

test('--since takes a cursor, how long ago, or a date', async (t) => {
  const run = aRun()
  const recent = LOG.map((event, index) => ({ ...event, at: Date.now() - (LOG.length - index) * 60_000 }))
  const { url, asked } = await startFake(t, {
    'runs.get': () => ({ run }),
    'runs.events': ({ since }) => ({ events: recent.filter(({ cursor }) => cursor > Number(since)), done: false }),
  })
  const lines = async (since: string) =>
    (await runCli(['logs', run.id, '--since', since], { url })).stdout.split('\n').length - 1
  assert.equal(await lines('3'), 1)
  assert.equal(asked.at(-1)?.args['since'], 3)
  assert.equal(await lines('150s'), 2)
  assert.equal(await lines('2020-01-01'), 4)
  const wrong = await runCli(['logs', run.id, '--since', 'noon'], { url })
  assert.deepEqual([wrong.code, /how long ago, or a date/.test(wrong.stderr)], [2, true])
  const channel = await runCli(['logs', run.id, '--channels', 'logs'], { url })
  assert.deepEqual([channel.code, /not `logs`/.test(channel.stderr)], [2, true])
})

test('logs -f goes on through a broken connection, says so, and ends with the code of the run', async (t) => {
  const run = aRun({ status: 'running' })
  let connections = 0
  const { url } = await startFake(t, {
    'runs.get': () => ({ run: connections < 2 ? run : { ...run, status: 'failed' } }),
    'runs.stream': (args, response) => {
      if (++connections > 1) return sendStream(response, LOG, args)
      sendSseHead(response)
      for (const event of LOG.slice(0, 2)) response.write(sseText(event))
      setImmediate(() => response.destroy())
      return undefined
    },
  })
  const { code, stdout, stderr } = await runCli(['logs', '-f', run.id], { url })
  assert.equal(code, 1)
  assert.match(stdout, /^.*queued\n.*▸ greet\n.*│ hello\n.*failed\n$/)
  assert.match(stderr, /connection lost .*, trying again/)
  connections = 0
  const json = await runCli(['logs', '-f', run.id, '--json'], { url })
  assert.deepEqual(jsonLines(json.stdout), [...LOG, { run: { ...run, status: 'failed' } }])
})

test('logs -f says that the log begins anew after a restore of the database', async (t) => {
  const run = aRun({ status: 'failed' })
  const message = 'The database was restored.'
  const { url } = await startFake(t, {
    'runs.get': () => ({ run }),
    'runs.stream': (_args, response) => {
      sendSseHead(response)
      response.write(`event: reset\ndata: ${JSON.stringify({ message })}\nid: 0\n\n`)
      for (const event of LOG) response.write(sseText(event))
      response.end(SSE_DONE)
    },
  })
  const shown = await runCli(['logs', run.id, '-f', '--since', '99'], { url })
  assert.match(shown.stderr, /The database was restored\./)
  assert.match(shown.stdout, /queued\n/)
  const { stdout } = await runCli(['logs', run.id, '-f', '--since', '99', '--json'], { url })
  assert.deepEqual(jsonLines(stdout)[0], { type: 'reset', message })
})
