// What a journal may have, what counts for it, and what happens when it is full.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { MOST_CHARS } from '../../../engine/rules/journal.ts'
import { end, returned, start, takeNext } from '../../_kit/agent.ts'
import { runOf } from '../../_kit/coordinator.ts'
import { calls, goesOn, identity, journalOf, parked, said, stepped, wakeOf } from '../../_kit/journal.ts'
import { journalStage } from '../../_kit/journal-crew.ts'

const fresh = { retries: { onCrash: 'fresh' } } as const
const { current, begun, next } = journalStage([
  { slug: 'any' },
  { slug: 'child' },
  { slug: 'fresh', descriptor: fresh },
])
const killed = (): Parameters<typeof end>[0] => ({ how: 'killed', signal: 'SIGKILL' })

test('the call that is one too many creates no child, and its run says what to do', async () => {
  const { c, link } = current()
  const first = await begun()
  await link.report(first, 2, calls(25_000, 'child'), calls(25_001, 'child'))
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code], ['failed', 'JOURNAL_FULL'])
  const { runs } = await c.call(ops.runs.children, { run: first.run })
  assert.equal(runs.length, 1)
  await c.call(ops.runs.cancel, { run: runs[0]!.id })
})

test('a journal with more than 32 MiB of results fails its run, which says what to do', async () => {
  const { c, link } = current()
  const first = await begun()
  const large = `"${'x'.repeat(1024 * 1024)}"`
  for (let n = 1; n <= 33; n++) {
    const entry = identity(n, 'step', { name: 'large' })
    const verdict = await link.report(first, n + 1, said({ op: 'close', entry, state: 'done', result: large }))
    if (verdict.kind === 'stale') break
  }
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code], ['failed', 'JOURNAL_FULL'])
  assert.match(run.error!.message, /Return less from step\(\)/)
})

test('questions and long names count as results do', async () => {
  const { c, link } = current()
  const first = await begun()
  const path = 'p'.repeat(10_000)
  const onTimeoutText = `"${'x'.repeat(1024 * 1024)}"`
  let questions = 0
  for (let n = 1; n <= 40; n++) {
    const asked = { for: 'input' as const, prompt: 'Q?', schemaText: null, timeoutMs: 3_600_000, onTimeoutText }
    const question = said({ op: 'open', entry: identity(n, 'input', { name: 'Q?', parent: path }), ask: asked })
    if ((await link.report(first, n + 1, question)).kind === 'stale') break
    questions = n
  }
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code, questions], ['failed', 'JOURNAL_FULL', 32])
})

test('what was forgotten takes no room of the next attempt', async () => {
  const { c, link } = current()
  const full = async (numbers: number[]) => {
    const first = await begun('fresh')
    await link.report(first, 2, stepped(1, 'paid'))
    await c.db`update runs set entries = ${24_999}, journal_chars = ${MOST_CHARS - 1} where id = ${first.run}`
    await link.report(first, 3, end(killed(), 1))
    const second = await next(first.run)
    assert.deepEqual([second.journal.entries, second.journal.forgotten], [24_999, 24_999])
    await link.report(second, 1, start(), ...numbers.map((n) => stepped(n, 'x'.repeat(1000))), end(returned(null), 1))
    const { status, error } = await runOf(c, first.run)
    return [status, error?.code]
  }
  assert.deepEqual(await full([25_000, 25_001, 49_999]), ['completed', undefined])
  assert.deepEqual(await full([50_000]), ['failed', 'JOURNAL_FULL'])
})

test('each entry is forgotten once, however many attempts there are', async () => {
  const { c, link } = current()
  const offer = await begun('fresh')
  // A row that is written again is at another place.
  const rows = () => c.db<{ n: number; state: string; place: string }[]>`
    select n, state, ctid::text as place from journal where run_id = ${offer.run} order by n`
  await link.report(offer, 2, stepped(1, 'paid'), stepped(2, 'sent'), end(killed(), 1))
  const second = await next(offer.run)
  const forgotten = await rows()
  assert.equal(forgotten.length, 2)
  await link.report(second, 1, start(), stepped(3, 'paid'), end(killed(), 1))
  const third = await next(offer.run)
  const all = await rows()
  assert.deepEqual(all.slice(0, 2), [...forgotten])
  assert.deepEqual(
    all.map(({ state }) => state),
    ['closed', 'closed', 'closed'],
  )
  assert.deepEqual([third.journal.entries, third.journal.forgotten, journalOf(third)], [3, 3, []])
  await link.report(third, 1, start(), end(returned(null), 1))
})

test('outputs of children that were forgotten take no room of the next attempt', async () => {
  const { c, agent, link } = current()
  const first = await begun('fresh')
  await link.report(first, 2, calls(1, 'child'))
  const child = await takeNext(agent, link)
  await link.report(first, 3, end(killed(), 1))
  await link.report(child, 1, start(), end(returned('x'.repeat(10_000)), 1))
  const second = await next(first.run)
  const [row] = await c.db<{ journalChars: number }[]>`
    select journal_chars::int as journal_chars from runs where id = ${first.run}`
  assert.equal(row!.journalChars, 0)
  await link.report(second, 1, start(), end(returned(null), 1))
})

test('an output that does not fit into the journal of its caller is a failure there', async () => {
  const { c, agent, link } = current()
  const parent = await begun()
  await link.report(parent, 2, calls(1, 'child'), calls(2, 'child'), parked('child'))
  await c.db`update runs set journal_chars = ${MOST_CHARS - 5000} where id = ${parent.run}`
  for (const chars of [6000, 500]) {
    const child = await takeNext(agent, link)
    await link.report(child, 1, start(), end(returned('x'.repeat(chars)), 1))
  }
  const rows = await c.db<{ state: string; result: string }[]>`
    select state, result from journal where run_id = ${parent.run} order by state desc`
  assert.deepEqual(
    rows.map(({ state }) => state),
    ['failed', 'done'],
  )
  const error = JSON.parse(rows[0]!.result) as { code: string; message: string }
  assert.equal(error.code, 'JOURNAL_FULL')
  assert.match(error.message, /6002 characters.*Return less/)
  await wakeOf(link, parent)
  await link.report(parent, 5, goesOn(), end(returned(null), 1))
})
