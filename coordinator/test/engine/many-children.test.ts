import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onMoment } from '@windlass/shared/probe.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { MOST_WEIGHT, partsOf, type ReadBatch, weightOf } from '../../engine/rules/batch.ts'
import type { JournalCommand } from '../../engine/rules/journal-command.ts'
import { anAgent, line, start } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { accepted, call, type Crew, open } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'parent' })
  await aWorkflow(c, { slug: 'child' })
})
after(() => c.stop())

async function aRunning() {
  const agent = await anAgent(c)
  const crew: Crew = { c, agent, link: await agent.connect() }
  await aRun(c, { workflow: 'parent' })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start())
  return { ...crew, offer }
}

const calls = (count: number) => Array.from({ length: count }, (_, i) => open(i + 1, call('child')))

test('children that are called all at once are created in many transactions, and other runs pass by', async (t) => {
  const [parent, other] = [await aRunning(), await aRunning()]
  t.after(() => [parent, other].forEach(({ agent }) => agent.close()))
  let commits = 0
  t.after(
    onMoment(({ name, facts }) => void (commits += name === 'group.committed' && facts.name === 'entries' ? 1 : 0)),
  )
  const { run, epoch } = parent.offer
  let isThrough = false
  parent.link.send({ t: 'entries', batches: [{ run, epoch, first: 2, entries: calls(1000) }] })
  // What its program says meanwhile comes behind them.
  parent.link.send({ t: 'entries', batches: [{ run, epoch, first: 1002, entries: [line('called')] }] })
  const through = parent.link.verdict(parent.offer).then((verdict) => {
    isThrough = true
    return verdict
  })
  assert.deepEqual(await other.link.report(other.offer, 2, line('x')), { kind: 'ack', seq: 2 })
  assert.equal(isThrough, false)
  assert.deepEqual(await through, { kind: 'ack', seq: 1001 })
  assert.deepEqual(await parent.link.verdict(parent.offer), { kind: 'ack', seq: 1002 })
  assert.ok(commits >= 6, `${commits} commits`)
  const rows = await c.db`select distinct parent_entry from runs where parent_run_id = ${run}`
  assert.equal(rows.length, 1000)
  assert.equal((await runOf(c, run)).status, 'running')
})

test('a batch that was taken in part goes on where it was when it is sent again', async (t) => {
  const { agent, link, offer } = await aRunning()
  t.after(() => agent.close())
  await link.report(offer, 2, ...calls(300))
  assert.deepEqual(await link.report(offer, 2, ...calls(600)), { kind: 'ack', seq: 601 })
  assert.deepEqual(await link.report(offer, 700, ...calls(600)), { kind: 'resume', seq: 601 })
  const rows = await c.db`select from runs where parent_run_id = ${offer.run}`
  assert.equal(rows.length, 600)
})

test('the parts of a batch are what it was, in its order, and none weighs too much', () => {
  const text = 'x'.repeat(40_000)
  const entries = Array.from({ length: 9000 }, (_, i): Entry => (i % 20 ? line(`${i}`) : ['e', 1, 'phase', text]))
  const list = Array.from({ length: 1000 }, () => [1, 1, 0, 0] as const)
  const said = [{ child: {}, op: { op: 'open' } }, { op: { op: 'deliver', list } }] as unknown as JournalCommand[]
  const commands = new Map(entries.flatMap((entry, i) => (i % 7 ? [] : [[entry, said[i % 2]!] as const])))
  const batch = { run: 'run', epoch: 1, first: 5, entries, commands, outputs: new Map() } as unknown as ReadBatch
  const parts = partsOf(batch)
  assert.deepEqual(
    parts.flatMap((part) => part.entries),
    entries,
  )
  assert.ok(parts.every((part) => weightOf(part) <= MOST_WEIGHT))
  assert.ok(parts.every((part) => part.entries.filter((entry) => commands.get(entry) === said[1]).length <= 8))
  let first = 5
  for (const part of parts) {
    assert.equal(part.first, first)
    first += part.entries.length
  }
})
