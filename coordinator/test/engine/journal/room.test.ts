// What a journal may have, and what counts for it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { MOST_CHARS } from '../../../engine/rules/journal.ts'
import { anAgent, end, type Link, returned, start, takeNext, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinator, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls, goesOn, parked, stepped, wakeOf } from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'child' })
  await aWorkflow(c, { slug: 'fresh', descriptor: { retries: { onCrash: 'fresh' } } })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun, next } = journalCrew(() => ({ c, agent, link }), 'any')
const killed = (): Parameters<typeof end>[0] => ({ how: 'killed', signal: 'SIGKILL' })

test('what was forgotten takes no room of the next attempt', async () => {
  const full = async (numbers: number[]) => {
    const first = await begun('fresh')
    await link.report(first, 2, stepped(1, 'paid'))
    await c.db`update runs set entries = 24_999, journal_chars = ${MOST_CHARS - 1} where id = ${first.run}`
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

test('outputs of children that were forgotten take no room of the next attempt', async () => {
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
