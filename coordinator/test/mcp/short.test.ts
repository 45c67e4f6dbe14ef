import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { cutToFit } from '../../mcp/cut.ts'
import { aRunningAgent, end, type Held, line, returned } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { ask, tool } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator
let held: Held
let run: string

const MOST_CHARS = 20_000

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  run = (await aRun(c, { workflow: 'any' })).id
  held = await aRunningAgent(c)
  const entries = [
    ...Array.from({ length: 90 }, (_, i) => line(`${i} ${'x'.repeat(1000)}`)),
    line('y'.repeat(60_000)),
    end(returned('done')),
  ]
  await held.link.report(held.offer, 2, ...entries)
})
after(async () => {
  held.agent.close()
  await c.stop()
})

test('a page whose items are large is made shorter, says so, and none of them is lost', async () => {
  const tags = Array.from({ length: 20 }, (_, n) => `${n}-${'t'.repeat(58)}`)
  for (let n = 0; n < 30; n++) await aRun(c, { workflow: 'any', tags })
  const seen: string[] = []
  let cursor: string | undefined
  let pages = 0
  do {
    const { structured, texts } = await tool(c, 'list_runs', { limit: 100, tag: tags[0], ...(cursor && { cursor }) })
    assert.ok(texts[0]!.length <= MOST_CHARS, `${texts[0]!.length} characters`)
    if (structured.nextCursor !== null) assert.match(texts[1]!, /The page has \d+ items only; `nextCursor`/)
    seen.push(...structured.runs.map(({ id }: { id: string }) => id))
    cursor = structured.nextCursor ?? undefined
    pages++
  } while (cursor)
  assert.equal(new Set(seen).size, 30)
  assert.ok(pages > 2)
})

test('a log comes in pages that are short, and `since` leads through all of it', async () => {
  const cursors: number[] = []
  let texts: string[] = []
  for (let done = false; !done;) {
    const query = { run, channels: ['lifecycle', 'log', 'output'], since: cursors.at(-1) ?? 0, limit: 1000 }
    const called = await tool(c, 'get_run_output', query)
    texts = called.texts
    assert.ok(texts[0]!.length <= MOST_CHARS, `${texts[0]!.length} characters`)
    cursors.push(...called.structured.events.map(({ cursor }: { cursor: number }) => cursor))
    if (!called.structured.done) assert.match(texts[1]!, /`since` \d+/)
    done = called.structured.done
  }
  assert.deepEqual(
    cursors,
    cursors.map((_, at) => at + 1),
  )
})

test('an event that is too long by itself is cut, and says where it is whole', async () => {
  const { structured, texts } = await tool(c, 'get_run_output', { run, channels: ['log'], since: 93 })
  assert.equal(structured.events.length, 1)
  assert.ok(texts[0]!.length <= MOST_CHARS)
  assert.match(texts[1]!, new RegExp(`60000 characters.*windlass://runs/${run}/events`))
  const { body } = await ask(c, 'resources/read', { uri: `windlass://runs/${run}/events` })
  assert.ok(body.result.contents[0].text.includes('y'.repeat(60_000)))
})

test('a large workflow keeps all its paths, and each file is whole as a resource', async () => {
  const big = Array.from({ length: 3000 }, (_, n) => `// line ${n}`).join('\n')
  const files = filesOf({
    'workflow.jsonc': '{ "slug": "large" }',
    'index.ts': `export const run = () => 1\n${big}`,
    'lib/ä b.ts': `export const b = 1\n${big}`,
    'README.md': '# Large',
  })
  await c.call(ops.workflows.create, { org: c.org, files })
  const { structured, texts } = await tool(c, 'get_workflow', { workflow: 'large' })
  assert.ok(texts[0]!.length <= MOST_CHARS)
  const found = new Map<string, string>(
    structured.files.map((file: { path: string; content: string }) => [file.path, file.content]),
  )
  assert.deepEqual([...found.keys()].sort(), files.map(({ path }) => path).sort())
  assert.equal(found.get('README.md'), '# Large')
  assert.match(texts[1]!, /`files\[\d\]\.content` has \d+ characters.*windlass:\/\/workflows\/large\/files\/\{path\}/)
  assert.deepEqual(structured.cut.join(' '), texts[1]!.replace('Cut to stay short. ', ''))
  const uri = `windlass://workflows/large/files/${encodeURI('lib/ä b.ts')}`
  const { body } = await ask(c, 'resources/read', { uri })
  assert.equal(body.result.contents[0].text, files[2]!.content)
})

test('an input with very many entries is cut, and says where it is whole', async () => {
  const input = Array.from({ length: 20_000 }, (_, n) => ({ n }))
  const { id } = await aRun(c, { workflow: 'any', input })
  const { structured, texts } = await tool(c, 'get_run_input', { run: id })
  assert.ok(texts[0]!.length <= MOST_CHARS)
  assert.deepEqual(structured.input[0], { n: 0 })
  assert.match(texts[1]!, /`input` has 20000 entries.*`offset` 0/)
})

test('whatever a value is, it is cut to fit or not at all', (t) => {
  const value = fc.jsonValue({ maxDepth: 6, depthSize: 'large', stringUnit: 'grapheme' })
  const big = fc.array(fc.tuple(fc.string({ maxLength: 3000, size: 'max', unit: 'grapheme' }), value), {
    size: 'max',
    maxLength: 40,
  })
  fc.assert(
    fc.property(big, (given) => {
      const cut = cutToFit({ given }, 18_000)
      if (cut === undefined) return JSON.stringify(given).length > 18_000
      const text = JSON.stringify(cut.value)
      assert.ok(text.length <= 18_000)
      assert.ok(text.isWellFormed())
      return JSON.stringify({ given }) === text || cut.notes.length > 0
    }),
    { numRuns: 200, ...repeatable(t) },
  )
})
