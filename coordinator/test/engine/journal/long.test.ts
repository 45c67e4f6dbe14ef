import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunnerIdentity } from '../../../actor.ts'
import { inlineJournals, journalFor } from '../../../engine/commit/read-journal.ts'
import { recordsOf } from '../../../engine/store/journal.ts'
import { createUnreadBytes, type UnreadBytes } from '../../../limits/unread-bytes.ts'
import { anAgent, type Link, start, type TestAgent } from '../../_kit/agent.ts'
import { countBlocked } from '../../_kit/blocked.ts'
import { aCoordinator, type TestCoordinator } from '../../_kit/coordinator.ts'
import { identity, said, sleeps, stepped } from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { untilPolled } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun } = journalCrew(() => ({ c, agent, link }), 'any')
// Each of these characters takes six of JSON.
const LARGE = '\u0001'.repeat(100_000)
const MIB = 1024 * 1024

async function aLongJournal() {
  const offer = await begun()
  const steps = Array.from({ length: 5 }, (_, i) => stepped(i + 1, LARGE))
  await link.report(offer, 1, start(), ...steps, sleeps(6, 3_600_000), stepped(7, 'small'), sleeps(8, 3_600_000))
  return offer
}

// To print the whole of one kept a connection to the database for half a minute; twenty readers had all that there are.
test('a long journal comes in pieces, which are the whole together', async () => {
  const offer = await aLongJournal()
  const url = `${c.url}/runner/v1/journals/${offer.run}?epoch=${offer.epoch}`
  const response = await fetch(url, { headers: { authorization: `Bearer ${await agent.token()}` } })
  assert.equal(response.headers.has('content-length'), false)
  const [whole] = await recordsOf(c.db, [{ runId: offer.run, forgottenEntries: 0 }], Number.MAX_SAFE_INTEGER)
  assert.deepEqual(await response.json(), JSON.parse(whole!.text))

  const none = await begun()
  const other = `${c.url}/runner/v1/journals/${none.run}?epoch=${none.epoch}`
  const empty = await fetch(other, { headers: { authorization: `Bearer ${await agent.token()}` } })
  assert.equal(await empty.text(), '[]')
})

test('what completes while a journal is read is told by the next wake, not by its later pieces', async () => {
  const offer = await aLongJournal()
  const complete = (n: number) => c.db`
    update journal
    set state = 'done', result = '"late"', completion = nextval('journal_completions')
    where run_id = ${offer.run} and n = ${n}`
  await complete(8)
  const runner = { id: agent.id, orgId: c.orgId } as RunnerIdentity
  let text = ''
  const { pieces } = await journalFor(c.deps, runner, { run: offer.run, epoch: offer.epoch })
  for await (const piece of pieces) {
    if (text === '') await complete(6)
    text += Buffer.from(piece)
  }
  const records = JSON.parse(text) as { n: number; state: string; result: string | null; completed: number | null }[]
  const [sixth, , eighth] = records.slice(5)
  assert.deepEqual([sixth!.n, sixth!.state, sixth!.result, sixth!.completed], [6, 'open', null, null])
  assert.deepEqual([eighth!.n, eighth!.state, eighth!.result], [8, 'done', '"late"'])
})

// 25,000 entries may have 300 MiB of them, and of results nothing.
test('a journal is long by all of its texts', async () => {
  const offer = await begun()
  const entry = (n: number) => identity(n, 'step', { parent: 'p'.repeat(9000), name: 'n'.repeat(500) })
  const commands = Array.from({ length: 8 }, (_, i) =>
    said({ op: 'close', entry: entry(i + 1), state: 'done', result: '1' }),
  )
  await link.report(offer, 1, start(), ...commands)
  assert.deepEqual(await inlineJournals(c.db, [{ runId: offer.run, forgottenEntries: 0 }]), new Map())
})

test('who reads a journal slowly keeps no other of the org from its turn', async () => {
  const offer = await aLongJournal()
  const runner = { id: agent.id, orgId: c.orgId } as RunnerIdentity
  const read = () => journalFor(c.deps, runner, { run: offer.run, epoch: offer.epoch })
  const slow = await Promise.all([read(), read(), read()])
  for (const { pieces } of slow) assert.equal((await pieces.next()).done, false)
  assert.equal((JSON.parse(await textOf(await read())) as unknown[]).length, 8)
  for (const { pieces } of slow) await pieces.return()
})

test('of a journal nothing is read for who has gone before its turn', async () => {
  const offer = await aLongJournal()
  const runner = { id: agent.id, orgId: c.orgId } as RunnerIdentity
  const of = { run: offer.run, epoch: offer.epoch }
  const assertConnected = () => {
    throw new Error('it has gone')
  }
  const { pieces } = await journalFor(c.deps, runner, { ...of, assertConnected })
  const { begun, next } = await c.db.begin(async (tx) => {
    // Whoever has a seat waits for this table, and those behind wait for a seat.
    await tx`lock table journal in access exclusive mode`
    const others = [await journalFor(c.deps, runner, of), await journalFor(c.deps, runner, of)]
    const begun = others.map((reader) => reader.pieces.next())
    await untilPolled('both seats to be taken', async () => (await countBlocked(c.db, '%from journal%')) === 2)
    const next = pieces.next()
    next.catch(() => {})
    return { begun, next }
  })
  await assert.rejects(next, /it has gone/)
  await Promise.all(begun)
})

test('over the limit of unread bytes the reader of a journal who has waited longest is cut', async () => {
  const offer = await aLongJournal()
  const runner = { id: agent.id, orgId: c.orgId } as RunnerIdentity
  const unreadJournals = createUnreadBytes({ org: 4 * MIB, all: 4 * MIB, log: c.deps.log })
  const read = () => journalFor({ ...c.deps, unreadJournals }, runner, { run: offer.run, epoch: offer.epoch })
  const readers = []
  for (let i = 0; i < 8; i++) {
    const reader = await read()
    const { value } = await reader.pieces.next()
    assert.ok(value!.length <= 64 * 1024, `a piece of ${value!.length} bytes`)
    readers.push(reader)
  }
  const isCut = readers.map(({ cut }) => cut.aborted)
  const count = isCut.filter(Boolean).length
  assert.ok(count > 0 && count < readers.length, `${count} were cut`)
  assert.ok(isCut.slice(0, count).every(Boolean), 'the first of them')
  for (const { pieces } of readers) await pieces.return()
  assert.equal((JSON.parse(await textOf(await read())) as unknown[]).length, 8)
})

test('readers who take nothing of streams and payloads have no journal of their org cut', async () => {
  const offer = await aLongJournal()
  const runner = { id: agent.id, orgId: c.orgId } as RunnerIdentity
  const { pieces, cut } = await journalFor(c.deps, runner, { run: offer.run, epoch: offer.epoch })
  await pieces.next()
  const releases = Array.from({ length: 9 }, () => c.deps.unread.hold(c.orgId, 32 * MIB, () => {}))
  assert.equal(cut.aborted, false)
  for (const release of releases) release()
  await pieces.return()
})

test('over HTTP a reader of a journal who is cut gets no end', async (t) => {
  const offer = await aLongJournal()
  const cuts: (() => void)[] = []
  const hold: UnreadBytes['hold'] = (_org, _bytes, cut) => {
    cuts.push(cut)
    return () => {}
  }
  t.mock.method(c.deps.unreadJournals, 'hold', hold)
  const url = `${c.url}/runner/v1/journals/${offer.run}?epoch=${offer.epoch}`
  const { body } = await fetch(url, { headers: { authorization: `Bearer ${await agent.token()}` } })
  const reader = body!.getReader()
  await reader.read()
  for (const cut of cuts) cut()
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  })
})

test('a coordinator that stops ends no journal in the middle as if it were whole', async () => {
  const offer = await aLongJournal()
  const other = await c.another()
  const url = `${other.url}/runner/v1/journals/${offer.run}?epoch=${offer.epoch}`
  const response = await fetch(url, { headers: { authorization: `Bearer ${await agent.token()}` } })
  const stopped = other.stop()
  const text = await response.text().catch(() => 'cut')
  if (text !== 'cut') assert.equal((JSON.parse(text) as unknown[]).length, 8)
  await stopped
})

async function textOf({ pieces }: Awaited<ReturnType<typeof journalFor>>): Promise<string> {
  const all = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all).toString()
}
