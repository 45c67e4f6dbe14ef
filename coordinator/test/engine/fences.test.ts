import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Instance } from '@windlass/shared/wire/agent.ts'
import { aHello, anAgent, end, type Link, start, takeNext, type TestAgent } from '../_kit/agent.ts'
import { ageLeases, ageTimers, SWEEPING } from '../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, aRun, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilNoted } from '../_kit/noted.ts'
import { silence } from '../_kit/silence.ts'
import { until } from '../_kit/until.ts'
import { anEvictedRun, sleepFor } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let sweeping: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinatorOfItsOwn()
  sweeping = await aCoordinatorOfItsOwn(SWEEPING)
  for (const one of [c, sweeping]) {
    await aWorkflow(one, { slug: 'any' })
    await aWorkflow(one, { slug: 'deadly', descriptor: { retries: { crash: 2, fence: 2 } } })
    await aWorkflow(one, { slug: 'frail', descriptor: { retries: { crash: 0, error: 0, fence: 2 } } })
  }
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  await Promise.all([c?.stop(), sweeping?.stop()])
})

const FENCED = end({ how: 'lost', reason: LOST_REASONS.fenced })
const KILLED = end({ how: 'killed', signal: 'SIGKILL' })

async function counts(on: TestCoordinator, run: string) {
  const [row] = await on.db<[{ crashes: number; thrown: number; fences: number }]>`
    select crashes, thrown, fences from runs where id = ${run}`
  return [row.crashes, row.thrown, row.fences]
}

test('a run whose agent was out of reach begins anew, though it may neither crash nor throw', async () => {
  const { id } = await aRun(c, { workflow: 'frail' })
  for (const attempt of [1, 2]) {
    const offer = await takeNext(agent, link)
    assert.deepEqual([offer.run, offer.attempt], [id, attempt])
    await link.report(offer, 2, FENCED)
    const run = await runOf(c, id)
    assert.deepEqual([run.status, run.attempt, run.lost?.what], ['queued', attempt + 1, 'network'])
    assert.deepEqual(await counts(c, id), [0, 0, attempt])
  }
  // What is a crash is one still.
  await link.report(await takeNext(agent, link), 2, KILLED)
  assert.equal((await runOf(c, id)).error?.code, 'RUN_CRASHED')
})

test('once more than retries.fence says, and it fails, with what to do about that', async () => {
  const { id } = await aRun(c, { workflow: 'frail' })
  for (let i = 0; i < 3; i++) await link.report(await takeNext(agent, link), 2, FENCED)
  const run = await runOf(c, id)
  assert.deepEqual([run.status, run.attempt, run.error?.code], ['failed', 3, 'RUN_FENCED'])
  assert.match(run.error!.message, /cut off 3 times.*`retries\.fence` allows 2.*runs why.*raise/)
  assert.deepEqual([run.error?.detail?.fences, run.error?.detail?.limit], [3, 2])
  const restarted = (await logOf(c, id)).filter(({ type }) => type === 'run.restarted')
  assert.deepEqual(
    restarted.map(({ data }) => [data.attempt, data.what]),
    [
      [2, 'network'],
      [3, 'network'],
    ],
  )
})

test('losses are counted by what was lost', async () => {
  const lines = (await (await fetch(`${c.url}/metrics`)).text()).split('\n')
  const lost = (what: string) => lines.find((line) => line.startsWith(`windlass_runs_lost_total{what="${what}"}`))
  assert.equal(lost('network')?.split(' ')[1], '5')
  assert.equal(lost('program')?.split(' ')[1], '1')
  assert.equal(lost('host')?.split(' ')[1], '0')
})

test('a workflow of before has twenty of them', async () => {
  await aWorkflow(c, { slug: 'old' })
  await c.db`
    update workflow_versions
    set descriptor = (descriptor::jsonb #- '{retries,fence}')::json
    where workflow_id = (select id from workflows where slug = 'old')`
  const { id } = await aRun(c, { workflow: 'old' })
  for (let i = 0; i < 20; i++) await link.report(await takeNext(agent, link), 2, FENCED)
  assert.deepEqual([(await runOf(c, id)).status, await counts(c, id)], ['queued', [0, 0, 20]])
  await link.report(await takeNext(agent, link), 2, FENCED)
  assert.equal((await runOf(c, id)).error?.code, 'RUN_FENCED')
})

test('an agent out of reach burns neither a replay nor a fence of a run that was being led back', async () => {
  await aWorkflow(c, { slug: 'once', descriptor: { retries: { crash: 0, error: 0, fence: 0 } } })
  const { run: id } = await anEvictedRun({ c, agent, link }, { workflow: 'once' }, sleepFor())
  const unconfirmed = end({ how: 'lost', reason: LOST_REASONS.unconfirmed })
  for (const lost of [FENCED, unconfirmed, FENCED, unconfirmed, FENCED, FENCED, FENCED]) {
    await ageTimers(c, id)
    const [offer] = await agent.poll()
    assert.ok(offer)
    assert.deepEqual([offer.run, offer.attempt, offer.replay], [id, 1, true])
    await link.accept(offer)
    await link.report(offer, 1, start(), lost)
    const run = await runOf(c, id)
    assert.deepEqual([run.status, run.attempt, run.lost?.what], ['sleeping', 1, 'network'])
    assert.deepEqual(await counts(c, id), [0, 0, 0])
    assert.deepEqual(await agent.poll(1, 0), [], 'it waits before it is tried again')
  }
  const [row] = await c.db<[{ replays: number; cutReplays: number; counted: number }]>`
    select replays, cut_replays, (select count(*)::int from run_losses where run_id = runs.id and is_counted) as counted
    from runs where id = ${id}`
  assert.deepEqual({ ...row }, { replays: 0, cutReplays: 7, counted: 0 })
  await c.call(ops.runs.cancel, { run: id })
})

const INSTANCE: Instance = { id: 'a', previous: [], host: 'h', boot: 'b1' }

async function acceptNext(one: TestAgent, link: Link) {
  const [offer] = await one.poll(1, 20_000)
  await link.accept(offer!)
  return offer!
}

/** A run of `frail` whose lease ran out while its agent, which spoke as `INSTANCE`, was silent. */
async function silent(
  hasBegun = true,
): Promise<{ run: Run; agent: TestAgent; back: (instance: Instance) => Promise<void> }> {
  const one = await anAgent(sweeping)
  const hello = async (instance: Instance) => {
    const link = await one.dial()
    link.send(aHello({ instance }))
    await link.next('welcome')
    return link
  }
  const first = await hello(INSTANCE)
  await aRun(sweeping, { workflow: 'frail' })
  const offer = await (hasBegun ? takeNext : acceptNext)(one, first)
  await ageLeases(sweeping, offer.run)
  const run = await until('the lease to run out', async () => {
    const run = await runOf(sweeping, offer.run)
    return run.lost && run
  })
  return { run, agent: one, back: async (instance) => void (await hello(instance)) }
}

test('a silent agent is taken for one out of reach, until it comes back and was killed meanwhile', async () => {
  const next = { ...INSTANCE, id: randomUUID(), previous: ['a'] }
  for (const [instance, expected] of [
    [INSTANCE, [0, 0, 1]],
    [next, [1, 0, 0]],
    [{ ...next, boot: 'b2' }, [1, 0, 0]],
  ] as const) {
    const { run, agent, back } = await silent()
    assert.deepEqual([run.status, run.attempt, run.lost?.what], ['queued', 2, 'unknown'])
    assert.deepEqual(await counts(sweeping, run.id), [0, 0, 1])
    await untilNoted(sweeping, agent)
    await silence(sweeping, agent)
    await back(instance)
    assert.deepEqual(await counts(sweeping, run.id), expected)
    await sweeping.call(ops.runs.cancel, { run: run.id })
  }
})

test('a silent agent that was killed before it began is no crash of its run, however it comes back', async () => {
  const next = { ...INSTANCE, id: randomUUID(), previous: ['a'] }
  for (const instance of [next, { ...next, boot: 'b2' }]) {
    const { run, agent, back } = await silent(false)
    await untilNoted(sweeping, agent)
    await silence(sweeping, agent)
    await back(instance)
    assert.deepEqual(await counts(sweeping, run.id), [0, 0, 1])
    const { lost } = await runOf(sweeping, run.id)
    assert.equal(lost?.what, instance === next ? 'daemon' : 'host')
    await sweeping.call(ops.runs.cancel, { run: run.id })
  }
})

test('a program that takes its machine with it is stopped by retries.crash, though its agent was silent', async () => {
  const one = await anAgent(sweeping)
  const hello = async (boot: number) => {
    const link = await one.dial()
    const previous = Array.from({ length: boot }, (_, n) => `i${n}`)
      .toReversed()
      .slice(0, 2)
    link.send(aHello({ instance: { ...INSTANCE, id: `i${boot}`, previous, boot: `b${boot}` } }))
    await link.next('welcome')
    return link
  }
  let link = await hello(0)
  const { id } = await aRun(sweeping, { workflow: 'deadly' })
  let losses = 0
  for (; losses < 10; losses++) {
    const offer = await takeNext(one, link)
    assert.equal(offer.run, id)
    await ageLeases(sweeping, id)
    const isOver = async () => (await runOf(sweeping, id)).attempt > offer.attempt || (await runOf(sweeping, id)).error
    await until('the lease to run out', isOver)
    if ((await runOf(sweeping, id)).error) break
    await untilNoted(sweeping, one)
    await silence(sweeping, one)
    link = await hello(losses + 1)
  }
  const { status, error } = await runOf(sweeping, id)
  // Two crashes may be, the third is too many; that it was one, its agent could say only after it had begun anew.
  assert.deepEqual([status, error?.code, losses], ['failed', 'RUN_CRASHED', 3])
  one.close()
})
