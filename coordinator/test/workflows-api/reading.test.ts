import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { onMoment } from '@windlass/shared/probe.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import {
  aCoordinatorOfItsOwn,
  anOrg,
  aRun,
  asOwner,
  rawCall,
  refusal,
  type TestCoordinator,
} from '../_kit/coordinator.ts'
import { ask, OLD_ERA, post, tool } from '../_kit/mcp.ts'
import { untilPolled } from '../_kit/until.ts'
import { filesOf } from '../_kit/workflow-files.ts'

const MIB = 1024 * 1024
const LIMIT = 64 * MIB
/** Ends of lines and quotes, which JSON writes in two characters; and pieces that end within a character. */
const TEXT = 'a "quoted" line of text 👋, äöü\n'.repeat(MIB / 40)
const LARGE = Array.from({ length: 16 }, (_, n) => [`data/${n + 10}.txt`, `${n}${TEXT}`] as const)

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({ MAX_DEPLOYS_BYTES: LIMIT, MAX_ORG_DEPLOYS_BYTES: LIMIT })
  await deploy(c, 'large', Object.fromEntries(LARGE))
})
after(() => c.stop())

const deploy = (as: TestCoordinator, slug: string, more: Record<string, string> = {}) => {
  const files = { 'index.ts': 'export const run = () => 1', 'workflow.jsonc': `{ "slug": "${slug}" }`, ...more }
  return as.call(ops.workflows.create, { org: as.org, files: filesOf(files) })
}

const path = (slug: string, as = c) => `/v1/orgs/${as.org}/workflows/${slug}`
const get = (slug: string, as = c) => as.call(ops.workflows.get, { org: as.org, workflow: slug })
/** The answer as it comes: to parse it would stop this process, which is the coordinator's too. */
async function drained(slug: string): Promise<number> {
  let bytes = 0
  for await (const piece of (await rawCall(c, 'GET', path(slug))).body!) bytes += piece.length
  return bytes
}

/** How many files each reader has come upon who has left since. */
function readersSince(t: TestContext): number[] {
  const files: number[] = []
  t.after(onMoment(({ name, facts }) => name === 'source.left' && files.push(facts.files)))
  return files
}

/** The longest time that the event loop took for one turn while `act` was under way. */
async function longestTurn(act: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let at = performance.now()
  let isOver = false
  const look = () => {
    longest = Math.max(longest, performance.now() - at)
    at = performance.now()
    if (!isOver) setImmediate(look)
  }
  look()
  await act()
  await nextTurn()
  isOver = true
  return longest
}

test('files come whole, whatever their pieces are', async () => {
  const { files } = await get('large')
  const found = new Map(files.map((file) => [file.path, file.content]))
  assert.equal(files.length, LARGE.length + 2)
  for (const [name, content] of LARGE) assert.ok(found.get(name) === content, name)
})

test('who has the files already, or asks for the head only, has nothing unpacked', async (t) => {
  const first = await rawCall(c, 'GET', path('large'))
  await first.arrayBuffer()
  const etag = first.headers.get('etag')!
  const readers = readersSince(t)
  const headers = { authorization: `Bearer ${c.apiKey}`, 'if-none-match': etag }
  assert.equal((await fetch(c.url + path('large'), { headers })).status, 304)
  const head = await rawCall(c, 'HEAD', path('large'))
  assert.deepEqual([head.status, head.headers.get('etag')], [200, etag])
  assert.deepEqual(readers, [])
})

// To print 45 MiB of files as one text took a second, in which no other org was answered.
test('the event loop goes on while files are read', async () => {
  const files = LARGE.map(([name, content]) => ({ path: name, content }))
  const atOnce = await longestTurn(async () => JSON.stringify(files))
  const turns: number[] = []
  // Whatever else this machine does stretches some of them.
  for (let n = 0; n < 5; n++) turns.push(await longestTurn(() => drained('large')))
  assert.ok(Math.min(...turns) < atOnce, `turns of ${turns.join(', ')} ms; ${atOnce} ms to print all at once`)
})

test('readers get one piece in a turn of the loop, however many there are', async (t) => {
  let turn = 0
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  const passed: number[] = []
  t.after(onMoment(({ name }) => name === 'pace.passed' && passed.push(turn)))
  count()
  await Promise.all([drained('large'), drained('large'), drained('large')])
  isOver = true
  assert.ok(passed.length >= (3 * LARGE.length * Buffer.byteLength(TEXT)) / 65_536, `${passed.length} pieces`)
  assert.equal(new Set(passed).size, passed.length)
})

test('one file is read without those behind it, and paths without any once they are known', async (t) => {
  await deploy(c, 'sought', { 'a.txt': 'first', 'b.txt': TEXT, 'z.txt': 'last' })
  const readers = readersSince(t)
  const read = async (name: string) =>
    (await ask(c, 'resources/read', { uri: `windlass://workflows/sought/files/${name}` })).body
  assert.equal((await read('a.txt')).result.contents[0].text, 'first')
  assert.equal((await read('b.txt')).result.contents[0].text.slice(0, TEXT.length), TEXT.slice(0, 200_000) + cutNote())
  assert.deepEqual(readers.splice(0), [1, 2])

  const file = { type: 'ref/resource', uri: 'windlass://workflows/{workflow}/files/{+path}' }
  const known = { arguments: { workflow: 'sought' } }
  for (const value of ['z', 'b']) {
    const asked = { ref: file, argument: { name: 'path', value }, context: known }
    const { completion } = (await ask(c, 'completion/complete', asked)).body.result
    assert.deepEqual(completion.values, [`${value}.txt`])
  }
  assert.match((await read('y.txt')).error.message, /did you mean `a.txt`/)
  assert.deepEqual(readers, [5])
})

test('slashes in the path of a file may be written as they are', async () => {
  await deploy(c, 'deep', { 'lib/äöü/a b.txt': 'deep', 'lib/50%.txt': 'half' })
  const contentOf = async (written: string) => {
    const response = await rawCall(c, 'GET', `${path('deep')}/files/${written}`)
    const { file, error } = (await response.json()) as { file?: { content: string }; error?: { code: string } }
    return file?.content ?? error?.code
  }
  for (const written of ['lib/%C3%A4%C3%B6%C3%BC/a%20b.txt', 'lib%2F%C3%A4%C3%B6%C3%BC%2Fa%20b.txt'])
    assert.equal(await contentOf(written), 'deep')
  assert.equal(await contentOf('lib/50%25.txt'), 'half')
  for (const none of ['', 'lib', 'lib/', '/lib/50%25.txt', 'lib//50%25.txt', 'lib/50%25.txt/', 'lib/50%.txt'])
    assert.equal(await contentOf(none), 'NOT_FOUND', none)
})

const cutNote = () =>
  `\n[This resource ends here, to stay short: the file has ${TEXT.length} characters. ` +
  'get_workflow_file reads it on from `offset` 200000.] … [cut by Windlass]'

test('a tool shows the beginnings of many long files, and how long they are', async () => {
  const { structured, texts } = await tool(c, 'get_workflow', { workflow: 'large' })
  const shown = structured.files as { path: string; content: string }[]
  assert.equal(shown.length, LARGE.length + 2)
  assert.ok(texts[0]!.length <= 20_000 && texts[0]!.length > 10_000, `${texts[0]!.length} characters`)
  for (const [name, content] of LARGE) {
    const { content: beginning } = shown.find((each) => each.path === name)!
    assert.ok(beginning.length > 500 && content.startsWith(beginning.replace(/… \[cut by Windlass\]$/, '')), name)
  }
  assert.match(texts[1]!, new RegExp(`has ${LARGE[0]![1].length} characters`))
})

test('an org has so many readers at once, and is told to come back like a deploy', async () => {
  const other = asOwner(c, await anOrg(c))
  await deploy(other, 'theirs')
  const holding = c.deps.reads.hold(c.orgId)
  holding.take(LIMIT)
  await assert.rejects(get('large'), refusal('RATE_LIMITED'))
  await assert.rejects(get('theirs', other), refusal('UNAVAILABLE'))
  const uri = 'windlass://workflows/large/files/index.ts'
  assert.equal((await ask(c, 'resources/read', { uri })).body.error.data.code, 'RATE_LIMITED')
  const { isError, value } = await tool(c, 'get_workflow', { workflow: 'large' })
  assert.deepEqual([isError, value.error.code], [true, 'RATE_LIMITED'])
  holding.release()
  assert.equal((await get('theirs', other)).files.length, 2)
  assertAllFree()
})

test('a reader who leaves gives back what it had', async (t) => {
  const readers = readersSince(t)
  const { hostname, port } = new URL(c.url)
  const leaving = connect(Number(port), hostname)
  leaving.write(`GET ${path('large')} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${c.apiKey}\r\n\r\n`)
  await once(leaving, 'data')
  leaving.pause()
  assert.throws(() => assertAllFree(), { code: 'RATE_LIMITED' })
  leaving.destroy()
  await untilPolled('the reader to be gone', () => readers.length === 1)
  assert.ok(readers[0]! < LARGE.length, `${readers[0]} files`)
  assertAllFree()
})

/** Throws when somebody has something of the room for readers. What is small is not counted. */
function assertAllFree() {
  const holding = c.deps.reads.hold(c.orgId)
  try {
    holding.take(LIMIT + 64 * 1024)
  } finally {
    holding.release()
  }
}

const reading = (names: string[]) =>
  names.map((name, id) => {
    const params = { uri: `windlass://workflows/large/files/${name}` }
    return { jsonrpc: '2.0', id, method: 'resources/read', params }
  })
const batch = async (messages: object[]) =>
  (await post(c, messages, { 'mcp-protocol-version': OLD_ERA })).body as Answered[]

interface Answered {
  id: number
  // oxlint-disable-next-line typescript/no-explicit-any -- a test says by its assertions what it expects
  result?: any
  error?: { message: string; data: { code: string } }
}

test('the messages of a batch are executed one after the other', async () => {
  const holding = c.deps.reads.hold(c.orgId)
  // One reader has room, and no second one beside it.
  holding.take(LIMIT - MIB + 64 * 1024)
  const answers = await batch(reading(Array.from({ length: 10 }, () => 'index.ts')))
  holding.release()
  assert.deepEqual(
    answers.map(({ result, error }) => error?.data.code ?? result.contents[0].text),
    answers.map(() => 'export const run = () => 1'),
  )
  assert.equal(answers.length, 10)
})

test('a call of a batch that waits keeps no other from being executed', async () => {
  const { id: run } = await aRun(c, { workflow: 'large' })
  const call = (id: number, name: string, args: object) => {
    const params = { name, arguments: { run, ...args } }
    return { jsonrpc: '2.0', id, method: 'tools/call', params }
  }
  const waiting = call(1, 'get_run_output', { since: 1, waitMs: 25_000 })
  const answers = await batch([waiting, call(2, 'cancel_run', {})])
  const { events } = answers.find(({ id }) => id === 1)!.result.structuredContent
  assert.ok(events.length > 0)
})

test('what a batch reads is bounded, and what has no room any more is not read', async (t) => {
  const readers = readersSince(t)
  const answers = await batch(reading(LARGE.slice(0, 9).map(([name]) => name)))
  const isRead = answers.toSorted((a, b) => a.id - b.id).map(({ result }) => result !== undefined)
  assert.deepEqual(isRead, [true, true, true, true, false, false, false, false, false])
  const { error } = answers.find(({ id }) => id === 8)!
  assert.equal(error!.data.code, 'PAYLOAD_TOO_LARGE')
  assert.match(error!.message, /by a request of its own/)
  assert.equal(readers.length, 5)
})
