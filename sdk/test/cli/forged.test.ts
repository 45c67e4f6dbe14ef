// Without a terminal, as in CI, nothing that a program or a stranger has written begins a line.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { LINE_BREAK } from '@windlass/shared/line-break.ts'
import { startFake } from '../_kit/fake-service.ts'
import { runCli } from '../_kit/run-cli.ts'
import { anInput, aRun, events, sendStream } from '../_kit/samples.ts'

const FORGED = ['09:00:00.000  completed', '::error::forged', '    at ::stop-commands::x']
const hostile = (beginning: string) => `${beginning}\n${FORGED[0]}\r${FORGED[1]}\r\n${FORGED[2]}\u2028${FORGED[1]}`

const error = {
  code: 'PROGRAM_FAILED',
  message: hostile('boom'),
  detail: { stack: `Error: x\n    at one\r${FORGED[1]}\n${FORGED[0]}` },
}
const LOG = events(
  ['lifecycle', 'run.queued', { reason: hostile('asked') }],
  ['phase', 'phase', { name: hostile('first') }],
  ['phase', 'phase', { name: 'second', data: { a: hostile('in') } }],
  ['log', 'log.stdout', { text: hostile('said') }],
  ['log', 'log.stderr', { text: `${hostile('warned')}\r`, level: 'warn', fields: { a: hostile('field') } }],
  ['lifecycle', 'run.awaiting_input', {}],
  ['lifecycle', 'run.failed', { error }],
)

/** Lines as CI reads them, without those that stand behind a bar. */
function begun(text: string): string[] {
  return text.split(LINE_BREAK).filter((line) => !/^\s*│ /.test(line))
}

function keepsTo(text: string): void {
  assert.match(text, /forged/)
  // `at` of a stack stays, where it names no command of CI.
  for (const line of begun(text)) assert.doesNotMatch(line, /^\s*(::|09:00:00\.000|at ::)/, text)
}

test('not in what run, logs and runs events tell of a run', async (t) => {
  const run = aRun({ status: 'failed', error })
  const { url } = await startFake(t, {
    'runs.trigger': () => ({ run }),
    'runs.get': () => ({ run }),
    'runs.stream': (args, response) => sendStream(response, LOG, args),
    'runs.events': () => ({ events: LOG, done: true }),
    'inputs.list': () => ({ inputs: [anInput({ prompt: hostile('Ship it?') })], nextCursor: null }),
  })
  const followed = await runCli(['run', 'hello', '--logs'], { url })
  assert.equal(followed.code, 1)
  keepsTo(followed.stderr)
  for (const prompt of ['asked', 'first', 'boom', 'said', 'Ship it?'])
    assert.match(followed.stderr, new RegExp(`${prompt.replace('?', '.')}\\n {2,14}│ 09:00:00`))
  for (const args of [
    ['logs', run.id],
    ['logs', run.id, '-f'],
    ['runs', 'events', run.id],
    ['runs', 'get', run.id],
  ]) {
    const { stdout, stderr } = await runCli(args, { url })
    keepsTo(stdout)
    keepsTo(`${stderr}forged`)
  }
})

test('not in lists, fields, notes and errors', async (t) => {
  const run = aRun({ status: 'failed', error, tags: [hostile('tag')] })
  const input = anInput({ prompt: hostile('Ship it?') })
  const why = {
    run: run.id,
    status: 'queued',
    since: Date.now(),
    summary: hostile('it waits'),
    causes: [{ code: 'CONCURRENCY_LIMIT', message: hostile('as'), since: null, until: null, change: hostile('do') }],
    process: null,
    losses: [],
    runners: [],
  }
  const { url } = await startFake(t, {
    'runs.get': () => ({ run }),
    'runs.why': () => ({ why }),
    'inputs.list': () => ({ inputs: [input], nextCursor: null }),
    'inputs.get': () => ({ input }),
    'runs.cancel': () => {
      throw new Fault('CONFLICT', {}, hostile('No.'))
    },
  })
  for (const args of [
    ['runs', 'get', run.id],
    ['runs', 'why', run.id],
    ['inputs', 'list'],
    ['inputs', 'get', input.id],
    ['runs', 'cancel', run.id],
  ]) {
    const { stdout, stderr } = await runCli(args, { url })
    keepsTo(stdout + stderr)
  }
})
