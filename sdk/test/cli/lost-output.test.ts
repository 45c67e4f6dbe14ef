// What becomes of a command whose standard output or error is taken away: real processes on real pipes and files.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { testCli } from '@windlass/shared/test/_kit/test-run.ts'
import type { Answerer } from '../_kit/fake-service.ts'
import { KEY, ORG, startFake } from '../_kit/fake-service.ts'
import { folderOf } from '../_kit/run-cli.ts'
import { aJob, aRun, events, sendSseHead, sendStream, sseText } from '../_kit/samples.ts'

const LOG = events(['lifecycle', 'run.queued'], ['log', 'log', { text: 'a' }], ['lifecycle', 'run.completed'])

/** A service whose workflow `fine` completes and whose workflow `boom` fails, both at once. */
async function service(t: TestContext, answers: Record<string, Answerer> = {}) {
  const run = aRun()
  let status: 'completed' | 'failed' = 'completed'
  const fake = await startFake(t, {
    'runs.trigger': ({ workflow }) => {
      status = workflow === 'boom' ? 'failed' : 'completed'
      return { run }
    },
    'runs.stream': (args, response) => sendStream(response, LOG, args),
    'runs.get': () => ({ run: { ...run, status, finishedAt: run.createdAt + 1 } }),
    'runs.output': () => ({ output: 'done' }),
    'runs.list': () => ({ runs: [run], nextCursor: null }),
    ...answers,
  })
  return { ...fake, run }
}

/** Says a line each moment for as long as somebody listens: whoever leaves is found out by the next one. */
const chatter: Answerer = (_args, response) => {
  sendSseHead(response)
  let cursor = 0
  const timer = setInterval(() => response.write(sseText({ ...LOG[1]!, cursor: ++cursor })), 20)
  response.on('close', () => clearInterval(timer))
}

/** A line of bash, in which `$W` is the command. */
async function bash(url: string, line: string): Promise<{ said: string; heard: string }> {
  const { file, variables } = testCli(['run'])
  const named = { WINDLASS_URL: url, WINDLASS_API_KEY: KEY, WINDLASS_ORG: ORG }
  const child = spawn('bash', ['-c', line], {
    cwd: os.tmpdir(),
    env: { PATH: process.env['PATH'], HOME: os.tmpdir(), ...variables, ...named, W: `${process.execPath} ${file}` },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  let said = ''
  let heard = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (heard += text))
  await once(child, 'close')
  return { said, heard }
}

test('who stops reading a run that goes on ends the command with 141, and is told the run', async (t) => {
  const { url, run } = await service(t, { 'runs.stream': chatter })
  for (const command of ['run boom', `logs -f ${run.id}`]) {
    const { said, heard } = await bash(url, `$W ${command} --json | head -1 >/dev/null; echo \${PIPESTATUS[0]}`)
    assert.equal(said, '141\n', `${command}: ${heard}`)
    const { error } = JSON.parse(heard) as { error: { code: string; detail: { run: string } } }
    assert.deepEqual([error.code, error.detail.run], ['OUTPUT_CLOSED', run.id])
  }
  const { heard } = await bash(url, `$W logs -f ${run.id} | head -1 >/dev/null`)
  assert.match(
    heard,
    new RegExp(`no longer following; ${run.id} goes on unless it has ended\\.\\nNext: windlass logs -f ${run.id} `),
  )
  assert.doesNotMatch(heard, /error:/)
})

test('what follows no run ends with 141 and without a word', async (t) => {
  const { url } = await service(t, { 'events.stream': chatter })
  const { said, heard } = await bash(url, `$W events --json | head -1 >/dev/null; echo \${PIPESTATUS[0]}`)
  assert.deepEqual([said, heard], ['141\n', ''])
})

test('a batch whose ids nobody reads any more starts nothing else, and says where to go on', async (t) => {
  let requests = 0
  const { url } = await service(t, {
    'runs.batch': ({ items }) => {
      requests++
      return { results: (items as object[]).map(() => ({ run: aRun() })) }
    },
  })
  const file = path.join(await folderOf(t, { 'runs.jsonl': '{}\n'.repeat(2500) }), 'runs.jsonl')
  // A pipe whose reader has left for sure.
  const unread = 'exec 3> >(exec true); wait $!;'
  const left = await bash(url, `${unread} $W run hello --batch ${file} >&3; echo $?`)
  assert.deepEqual([left.said, requests], ['141\n', 1], left.heard)
  assert.match(left.heard, /^Standard output was closed\. Lines 1 to 1000 are done: 1000 runs were started\.\n/)
  assert.match(left.heard, /\nNext: go on from line 1001: tail -n \+1001 '.*' \| windlass run hello --batch -/)
  const json = await bash(url, `${unread} $W run hello --json --batch ${file} >&3`)
  const { error } = JSON.parse(json.heard) as { error: { code: string; detail: object } }
  assert.deepEqual([error.code, error.detail], ['OUTPUT_CLOSED', { goOnFrom: 1001 }])
  const full = await bash(url, `$W run hello --batch <(head -1 ${file}) >/dev/full; echo $?`)
  assert.equal(full.said, '74\n')
  assert.match(full.heard, /ENOSPC.*\. All lines are done: 1 runs were started\./)
})

test('a command that is over has its own exit code, whoever has left', async (t) => {
  const { url } = await service(t, { 'runs.bulkCancel': () => ({ job: aJob({ status: 'cancelled' }) }) })
  for (const [command, code] of [
    ['runs list', 0],
    ['runs list --json', 0],
    ['runs list --help', 0],
    ['run fine', 0],
    ['run boom', 1],
    ['runs bulk-cancel --all --wait', 3],
    ['runs bulk-cancel --all --wait --json', 3],
  ] as const) {
    const { said, heard } = await bash(url, `$W ${command} | exec true; echo \${PIPESTATUS[0]}`)
    assert.equal(said, `${code}\n`, `${command}: ${heard}`)
  }
})

test('standard error may go at any time: the outcome and the answer stay', async (t) => {
  const { url } = await service(t)
  for (const away of ['2> >(exec head -1 >/dev/null)', '2> >(exec true)', '2>&-', '2>/dev/full']) {
    const fine = await bash(url, `$W run fine --logs ${away}; echo $?`)
    assert.equal(fine.said, '"done"\n0\n', away)
    assert.equal((await bash(url, `$W run boom --logs ${away}; echo $?`)).said, '1\n', away)
    assert.equal((await bash(url, `$W runs no-such-command ${away}; echo $?`)).said, '2\n', away)
  }
})

test('an answer that cannot be written is an error of its own, and says what may be done', async (t) => {
  const { url, run } = await service(t)
  for (const command of ['run fine', 'run fine --no-follow', 'runs list', 'runs list --json']) {
    const { said, heard } = await bash(url, `$W ${command} >/dev/full; echo $? >&2`)
    assert.equal(said, '')
    assert.match(heard, /74\n$/, command)
    assert.match(heard, /Standard output could not be written: ENOSPC.* What was asked for may be done/, command)
    assert.doesNotMatch(heard, /\n {4}at /, command)
    if (command.endsWith('--json')) assert.equal(outputCode(heard), 'OUTPUT_NOT_WRITTEN')
    else assert.match(heard, /\nNext: make room/)
  }
  const { heard } = await bash(url, `$W run fine --json >/dev/full; echo $? >&2`)
  assert.match(heard, new RegExp(`"OUTPUT_NOT_WRITTEN".*${run.id} goes on.*\\n74\\n$`))
})

function outputCode(heard: string): string {
  return (JSON.parse(heard.split('\n')[0]!) as { error: { code: string } }).error.code
}

test('a run that failed says so by its code, whatever became of the answer', async (t) => {
  const { url } = await service(t)
  const { heard } = await bash(url, `$W run boom >/dev/full; echo $? >&2`)
  assert.match(heard, /✖ hello failed[^]*\n1\n$/)
  assert.doesNotMatch(heard, /could not be written/)
})
