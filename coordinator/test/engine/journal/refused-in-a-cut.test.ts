import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import { aHello, anAgent, type Link, placementOf, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinator, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls } from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { until } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

// A program that has returned ends once its calls are acknowledged: what came of those that were refused has to be
// with it by then, also when the connection breaks between the two.

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

/** A run whose call is refused and committed, and whose agent has heard of neither. */
async function refusedUnheard() {
  const offer = await begun()
  const call = calls(1, 'nobody')
  link.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: 2, entries: [call] }] })
  link.close()
  await until('the call is refused', async () => {
    const [row] = await c.db<{ state: string }[]>`select state from journal where run_id = ${offer.run}`
    return row?.state === 'failed'
  })
  return { offer, call }
}

const isWakeOf = (run: string) => (frame: CoordinatorFrame) =>
  frame.t === 'wake' && frame.runs.some((wake) => wake.run === run && wake.completions[0]?.state === 'failed')

test('after a cut a refusal is told before the welcome, which acknowledges its call', async () => {
  const { offer } = await refusedUnheard()
  link = await agent.dial()
  link.send(aHello({ holds: [placementOf(offer)] }))
  const frames = await until('both are told', () => {
    const unread = link.unread()
    return unread.some(({ t }) => t === 'welcome') && unread.some(({ t }) => t === 'wake') && unread
  })
  const [wake, welcome] = [frames.findIndex(isWakeOf(offer.run)), frames.findIndex(({ t }) => t === 'welcome')]
  assert.ok(wake !== -1 && wake < welcome, frames.map(({ t }) => t).join())
  await link.next('welcome')
})

test('entries that are sent again are acknowledged once their refusals are told again', async () => {
  const { offer, call } = await refusedUnheard()
  link = await agent.connect([placementOf(offer)])
  // Before the welcome, and with all else behind it.
  await link.next('wake')
  await link.next('wake')
  const wakes = link.unread().filter(isWakeOf(offer.run)).length
  const { run, epoch } = offer
  // In one transaction with what comes behind them.
  link.send({
    t: 'entries',
    batches: [
      { run, epoch, first: 2, entries: [call] },
      { run, epoch, first: 3, entries: [['e', Date.now(), 'log.stdout', '{"text":"on"}']] },
    ],
  })
  await link.verdict(offer)
  assert.equal(link.unread().filter(isWakeOf(offer.run)).length, wakes + 1)
  assert.deepEqual(await link.verdict(offer), { kind: 'ack', seq: 3 })
})
