import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { startFake } from '../_kit/fake-service.ts'
import { folderOf, jsonLines, runCli } from '../_kit/run-cli.ts'
import { aRun } from '../_kit/samples.ts'

const lines = (...items: object[]) => items.map((item) => JSON.stringify(item)).join('\n')

test('run --batch starts a run for each line, and prints their ids', async (t) => {
  const runs = [aRun(), aRun()]
  const { url, asked } = await startFake(t, { 'runs.batch': () => ({ results: runs.map((run) => ({ run })) }) })
  const input = `${lines({ input: 1 }, { input: 2, tags: ['own'] })}\n\n`
  const { code, stdout, stderr } = await runCli(['run', 'hello', '--batch', '-', '--tag', 'all'], { url, input })
  assert.equal(code, 0, stderr)
  assert.deepEqual(stdout.trimEnd().split('\n'), [runs[0]!.id, runs[1]!.id])
  const { workflow, items } = asked[0]!.args as { workflow: string; items: { input: number; tags: string[] }[] }
  assert.equal(workflow, 'hello')
  assert.deepEqual(
    items.map(({ input, tags }) => [input, tags]),
    [
      [1, ['all']],
      [2, ['own']],
    ],
  )
})

test('what was refused is told by the number of its line, and the command ends with 1', async (t) => {
  const run = aRun()
  const error = { code: 'VALIDATION_FAILED', message: 'input: must be a number.' }
  const { url } = await startFake(t, { 'runs.batch': () => ({ results: [{ run }, { error }] }) })
  const input = `${lines({ input: 1 })}\n\n${lines({ input: 'x' })}`
  const { code, stdout, stderr } = await runCli(['run', 'hello', '--batch', '-'], { url, input })
  assert.equal(code, 1)
  assert.equal(stdout, `${run.id}\n`)
  assert.match(stderr, /line 3: VALIDATION_FAILED: input: must be a number\./)
  assert.match(stderr, /1 of 2 runs were started/)
  const json = await runCli(['run', 'hello', '--batch', '-', '--json'], { url, input })
  assert.deepEqual(jsonLines(json.stdout), [
    { line: 1, run },
    { line: 3, error },
  ])
})

test('a thousand lines are one request', async (t) => {
  const run = aRun()
  const sizes: number[] = []
  const { url } = await startFake(t, {
    'runs.batch': (args) => {
      const { items } = args as { items: unknown[] }
      sizes.push(items.length)
      return { results: items.map(() => ({ run })) }
    },
  })
  const input = lines(...Array.from({ length: 2001 }, (_, n) => ({ input: n })))
  assert.equal((await runCli(['run', 'hello', '--batch', '-'], { url, input })).code, 0)
  assert.deepEqual(sizes, [1000, 1000, 1])
})

test('lines that are no objects, no lines and flags for one run are refused before anything is sent', async (t) => {
  const { url, asked } = await startFake(t, {})
  const refused = async (args: string[], input: string, message: RegExp) => {
    const { code, stderr } = await runCli(['run', 'hello', '--batch', '-', ...args], { url, input })
    assert.equal(code, 2)
    assert.match(stderr, message)
  }
  await refused([], '{"input":1}\n[2]', /line 2 of standard input is not a JSON object/)
  await refused([], '{"input":1}\n{"input"', /line 2 of standard input is not a JSON object/)
  await refused([], '\n\n', /standard input holds no line/)
  await refused(['--input', '1'], '{}', /--input is for one run/)
  await refused(['--idempotency-key', 'k'], '{}', /--idempotency-key is for one run/)
  assert.deepEqual(asked, [])
})

/** A service that fails so at the second request, and a file of 1500 lines. */
async function failingAtSecond(t: TestContext, fault: Fault, line: (n: number) => object) {
  let requests = 0
  const { url } = await startFake(t, {
    'runs.batch': ({ items }) => {
      if (++requests % 2 === 0) throw fault
      return { results: (items as unknown[]).map((_, n) => (n === 0 ? { error: REFUSAL } : { run: aRun() })) }
    },
  })
  const cwd = await folderOf(t, { 'runs.jsonl': lines(...Array.from({ length: 1500 }, (_, n) => line(n))) })
  return (more: string[] = [], input?: string) =>
    runCli(['run', 'hello', '--batch', input === undefined ? 'runs.jsonl' : '-', ...more], { url, cwd, input })
}

const REFUSAL = { code: 'VALIDATION_FAILED', message: 'input: must be a number.' }

test('a batch that fails amid its requests says what was started, and where to go on', async (t) => {
  const run = await failingAtSecond(t, new Fault('FORBIDDEN'), (input) => ({ input }))
  const { code, stdout, stderr } = await run()
  assert.equal(code, 4, stderr)
  assert.equal(stdout.trimEnd().split('\n').length, 999)
  assert.match(stderr, /Lines 1 to 1000 are done: 999 runs were started\.\n/)
  assert.match(stderr, /Next: go on from line 1001: tail -n \+1001 'runs\.jsonl' \| windlass run hello --batch -/)
  const { error } = JSON.parse((await run(['--json'])).stderr) as { error: { detail: unknown } }
  assert.deepEqual(error.detail, { goOnFrom: 1001 })
})

test('the rest of a file that was read counts from where it began', async (t) => {
  const run = await failingAtSecond(t, new Fault('FORBIDDEN'), (input) => ({ input }))
  const input = lines(...Array.from({ length: 1500 }, (_, n) => ({ input: n })))
  const { stderr } = await run([], input)
  assert.match(stderr, /Lines 1 to 1000 of what was read are done: 999 runs were started\.\n/)
  assert.match(stderr, /go on from line 1001: \.\.\. \| tail -n \+1001 \| windlass run hello --batch -/)
})

test('what may have been started of a batch is to be looked at first, unless its lines have keys', async (t) => {
  const plain = await failingAtSecond(t, new Fault('UNAVAILABLE'), (input) => ({ input }))
  const { code, stderr } = await plain()
  assert.equal(code, 5)
  assert.match(stderr, /Lines 1 to 1000 are done: [^]* Runs of lines 1001 to 1500 may have been started\.\n/)
  assert.match(stderr, /Next: windlass runs list --workflow hello shows [^]*go on from line 1001/)
  assert.doesNotMatch(stderr, /again: windlass|try again/)
  const keyed = await failingAtSecond(t, new Fault('UNAVAILABLE'), (n) => ({ idempotencyKey: `line-${n}` }))
  const { stderr: said } = await keyed()
  assert.match(said, /Lines 1 to 1000 are done: 999 runs were started\.\nNext: go on from line 1001/)
})
