import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aRunningAgent, end, type Held, returned } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { refusedBy, tool } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MOST_CHARS = 20_000
const LARGE = { lines: Array.from({ length: 4000 }, (_, n) => `${n} "quoted" 👋\n\u0001`) }

let c: TestCoordinator
let held: Held
let run: string

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  run = (await aRun(c, { workflow: 'any', input: LARGE })).id
  held = await aRunningAgent(c)
})
after(async () => {
  held.agent.close()
  await c.stop()
})

/** The value as a client puts it together from its parts. */
async function readWhole(name: string, field: 'input' | 'output'): Promise<unknown> {
  let text = ''
  for (let offset: number | null = 0; offset !== null;) {
    const { structured, texts } = await tool(c, name, { run, offset })
    assert.ok(texts[0]!.length <= MOST_CHARS, `${texts[0]!.length} characters`)
    assert.equal(structured.cut, undefined)
    text += structured[field]
    assert.equal(structured.part.chars, JSON.stringify(LARGE).length)
    offset = structured.part.nextOffset
  }
  return JSON.parse(text)
}

test('an input and an output of any size are read whole in parts', async () => {
  assert.equal(await refusedBy(c, 'get_run_result', { run }), 'RUN_NOT_FINISHED')
  assert.equal(await refusedBy(c, 'get_run_result', { run, offset: 0 }), 'RUN_NOT_FINISHED')
  await held.link.report(held.offer, 2, end(returned(LARGE)))
  assert.deepEqual(await readWhole('get_run_result', 'output'), LARGE)
  assert.deepEqual(await readWhole('get_run_input', 'input'), LARGE)
})

test('what does not fit says how to read it whole, wherever it is met', async () => {
  const result = await tool(c, 'get_run_result', { run })
  assert.ok(result.texts[0]!.length <= MOST_CHARS)
  assert.match(result.texts[1]!, /`output\.lines` has 4000 entries.*`offset` 0/)
  assert.match((await tool(c, 'get_run_input', { run })).texts[1]!, /`offset` 0/)
  const { structured } = await tool(c, 'get_run_output', { run, channels: ['output'] })
  assert.equal(structured.events[0].data.truncated, true)
})

test('without an offset the value is as it was, over REST too', async () => {
  assert.deepEqual(await c.call(ops.runs.output, { run }), { output: LARGE })
  const { output, part } = await c.call(ops.runs.output, { run, offset: 5 })
  const text = JSON.stringify(LARGE)
  assert.equal(output, text.slice(5, part!.nextOffset!))
  assert.deepEqual((await tool(c, 'get_run_result', { run, offset: text.length })).structured, {
    output: '',
    part: { offset: text.length, chars: text.length, nextOffset: null },
  })
})

test('a value of very many names comes in parts without being asked to, and nothing parses it', async (t) => {
  const names = Object.fromEntries(Array.from({ length: 30_000 }, (_, n) => [n.toString(36), 1]))
  const text = JSON.stringify(names)
  const { id } = await aRun(c, { workflow: 'any', input: names })
  const { parse } = JSON
  const parsed: number[] = []
  t.mock.method(JSON, 'parse', (json: string) => (parsed.push(json.length), parse(json)))
  const { structured } = await tool(c, 'get_run_input', { run: id })
  t.mock.restoreAll()
  assert.equal(structured.input, text.slice(0, structured.part.nextOffset))
  assert.equal(structured.part.chars, text.length)
  assert.deepEqual(
    parsed.filter((chars) => chars > text.length / 2),
    [],
  )
})
