import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import type { PendingInput } from '@windlass/shared/model/input.ts'
import { startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'
import { anInput } from '../_kit/samples.ts'

/** A service on which one question is open. */
async function serviceWith(t: TestContext, input: PendingInput) {
  const fake = await startFake(t, {
    'inputs.get': () => ({ input }),
    'inputs.respond': ({ answer }) => ({ input: { ...input, status: 'answered', answer } }),
  })
  const answers = () => fake.asked.filter(({ id }) => id === 'inputs.respond').map(({ args }) => args['answer'])
  return { ...fake, answers }
}

test('inputs list is a line per question for a pipe, and the answer itself with --json', async (t) => {
  const schema = { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] }
  const input = anInput({ prompt: 'Ship\nit?', schema })
  const answer = { inputs: [input], nextCursor: 'abc' }
  const { url, asked } = await startFake(t, { 'inputs.list': () => answer })
  const args = ['inputs', 'list', '--status', 'open,answered', '--run', input.run.id]
  const { code, stdout, stderr } = await runCli(args, { url })
  assert.equal(code, 0, stderr)
  const cells = stdout.trimEnd().split('\t')
  assert.deepEqual(cells.slice(0, 4), [input.id, input.run.id, 'approval', 'open'])
  assert.deepEqual(cells.slice(-2), ['{ approved: boolean }', 'Ship it?'])
  assert.match(stderr, new RegExp(`Next: windlass inputs respond ${input.id}`))
  assert.match(stderr, /More: windlass inputs list --status open,answered --run run_\w+ --cursor abc/)
  assert.deepEqual(asked[0]?.args, { org: 'acme', status: ['open', 'answered'], run: input.run.id, limit: 50 })
  assert.deepEqual(JSON.parse((await runCli(['inputs', 'list', '--json'], { url })).stdout), answer)
})

test('a question ends no list, whatever stands in its schema', async (t) => {
  const schemas = [{ type: 'object', properties: { x: true }, required: ['x'] }, { anyOf: [true] }, false, { $ref: 7 }]
  const inputs = schemas.map((schema) => anInput({ schema }))
  const { url } = await startFake(t, { 'inputs.list': () => ({ inputs, nextCursor: null }) })
  const { code, stdout, stderr } = await runCli(['inputs', 'list'], { url })
  assert.equal(code, 0, stderr)
  const cells = stdout.trimEnd().split('\n')
  assert.deepEqual(
    cells.map((line) => line.split('\t').at(-2)),
    ['{ x: any }', 'any', 'never', 'any'],
  )
  assert.match(stderr, /respond \S+ '\{"x":null\}'/)
})

test('inputs get shows the question and what it takes', async (t) => {
  const input = anInput({ status: 'answered', closedAt: Date.now(), answeredBy: 'key_x', answer: { a: 1 } })
  const { url } = await serviceWith(t, input)
  const { stdout } = await runCli(['inputs', 'get', input.id], { url })
  assert.match(stdout, /prompt +Ship it\?\ntakes +any\n[^]*answered by +key_x\nanswer +\{"a":1\}/)
})

test('an answer is JSON from the command line, a file or standard input', async (t) => {
  const input = anInput()
  const { url, answers } = await serviceWith(t, input)
  const cwd = await folderOf(t, { 'answer.json': '{"from":"a file"}\n' })
  const respond = (args: string[], more = {}) => runCli(['inputs', 'respond', input.id, ...args], { url, cwd, ...more })
  const { code, stdout, stderr } = await respond(['{"approved":true}'])
  assert.deepEqual([code, stdout], [0, `${input.id} is answered\n`], stderr)
  assert.match(stderr, new RegExp(`Next: windlass logs -f ${input.run.id}`))
  await respond(['--answer-file', 'answer.json'])
  await respond(['@answer.json'])
  await respond(['-'], { input: 'null' })
  await respond(['--', '-5'])
  assert.deepEqual(answers(), [{ approved: true }, { from: 'a file' }, { from: 'a file' }, null, -5])
})

test('plain text is an answer where a string is asked for, also when it looks like a number', async (t) => {
  const input = anInput({ schema: { type: 'string' } })
  const { url, answers } = await serviceWith(t, input)
  for (const text of ['looks good', '"quoted"', '42', 'true'])
    assert.equal((await runCli(['inputs', 'respond', input.id, text], { url })).code, 0)
  await runCli(['inputs', 'respond', input.id, '-'], { url, input: 'two\nlines\n' })
  assert.deepEqual(answers(), ['looks good', 'quoted', '42', 'true', 'two\nlines'])
})

test('plain text elsewhere is refused with the quotes that it lacks, and nothing is sent', async (t) => {
  const input = anInput({ schema: { type: 'boolean' } })
  const { url, answers } = await serviceWith(t, input)
  const { code, stderr } = await runCli(['inputs', 'respond', input.id, 'yes'], { url })
  assert.equal(code, 2)
  assert.match(stderr, /is not JSON, and the question takes boolean\. A string is JSON when it is quoted/)
  assert.equal((await runCli(['inputs', 'respond', input.id], { url })).code, 2)
  assert.equal((await runCli(['inputs', 'respond', input.id, '1', '--answer-file', 'x'], { url })).code, 2)
  assert.deepEqual(answers(), [])
})

test('a closed question, a misfit and an unknown one have their exit codes and next steps', async (t) => {
  const input = anInput()
  const { url, answers } = await startFake(t, { 'inputs.get': () => ({ input }) })
  answers['inputs.respond'] = () => {
    throw new Fault('INPUT_CLOSED', { status: 'answered', answeredBy: 'key_x' }, 'The question was answered by key_x.')
  }
  const closed = await runCli(['inputs', 'respond', input.id, '1'], { url })
  assert.equal(closed.code, 1)
  assert.match(closed.stderr, /answered by key_x[^]*Next: windlass inputs get/)
  answers['inputs.respond'] = () => {
    throw new Fault('VALIDATION_FAILED', { path: 'answer.zip' }, 'answer.zip: must be a string, but is a number')
  }
  assert.equal((await runCli(['inputs', 'respond', input.id, '1'], { url })).code, 2)
  delete answers['inputs.get']
  assert.equal((await runCli(['inputs', 'get', input.id], { url })).code, 4)
})
