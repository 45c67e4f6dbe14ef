import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { PoolId } from '@windlass/shared/ids.ts'
import type { Why } from '@windlass/shared/model/why.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []
let pools = 0

before(async () => {
  c = await aCoordinator()
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

const whyOf = async (run: string): Promise<Why> => (await c.call(ops.runs.why, { run })).why
const codesOf = (why: Why) => why.causes.map((cause) => cause.code)

/** A pool of its own with a workflow in it. */
async function aPool(descriptor: Record<string, unknown> = {}): Promise<{ pool: string; workflow: string }> {
  const pool = `pool-${++pools}`
  await c.call(ops.pools.create, { org: c.org, name: pool })
  const { slug } = await aWorkflow(c, { slug: `of-${pool}`, descriptor: { pool, ...descriptor } })
  return { pool, workflow: slug }
}

async function anAgentIn(pool: string, slots: number, name: string): Promise<TestAgent> {
  const [row] = await c.db<[{ id: PoolId }]>`select id from runner_pools where name = ${pool} and org_id = ${c.orgId}`
  const agent = await anAgent(c, { pool: row.id, slots, name })
  agents.push(agent)
  return agent
}

/** Facts about a runner that an agent or a person would have brought about. */
async function set(id: string, { polled = 5, heard = 5, ...facts }: Facts): Promise<void> {
  const { intake = {}, ...own } = facts
  const unready = JSON.stringify(own.unready ?? [])
  await c.db`
    update runners
    set last_poll_at = now() - ${polled}::float8 * interval '1 second', last_heartbeat_at = now() - ${heard}::float8 * interval '1 second',
        labels = ${own.labels ?? []}, unready = ${unready}::text::json
    where id = ${id}`
  const { state = 'open', byKind = null, byName = null, reason = '', quarantineMs = null } = intake
  await c.db`
    update runner_intake
    set state = ${state}, by_kind = ${byKind}, by_name = ${byName}, reason = ${reason},
        quarantined_until = now() + ${quarantineMs}::float8 * interval '1 millisecond', quarantine_reason = 'disks fail'
    where runner_id = ${id}`
}

interface Facts {
  /** Seconds ago; null: never. */
  polled?: number | null
  heard?: number | null
  labels?: string[]
  unready?: { check: string; message: string }[]
  intake?: { state?: string; byKind?: string; byName?: string; reason?: string; quarantineMs?: number }
}

test('each runner of the pool is named with what keeps it from taking the run', async () => {
  const { pool, workflow } = await aPool({ labels: ['gpu'], slots: 2 })
  const gpu = { labels: ['gpu'] }
  const by = { byKind: 'caller', byName: 'ops' }
  const cases: Record<string, [facts: Facts, reason: RegExp]> = {
    polling: [gpu, /^would take it: asks for work, 0 of 4 slots taken$/],
    never: [{ ...gpu, polled: null, heard: null }, /^has registered and was never heard of since$/],
    offline: [{ ...gpu, polled: 600, heard: 300 }, /^is offline: last heard of 5 min ago, at \d{4}-.* UTC$/],
    quiet: [{ ...gpu, polled: 180 }, /^is connected and last asked for work 3 min ago, at .* UTC$/],
    mute: [{ ...gpu, polled: null }, /^is connected and has not asked for work yet$/],
    revoked: [
      { ...gpu, intake: { state: 'revoked', ...by, reason: 'stolen' } },
      /^is revoked by ops since .* UTC, and gets nothing any more \(stolen\)$/,
    ],
    cordoned: [{ ...gpu, intake: { state: 'cordoned', ...by } }, /^is cordoned by ops since .* UTC$/],
    leaving: [
      { ...gpu, intake: { state: 'draining', byKind: 'agent', byName: 'the agent itself', reason: 'SIGTERM' } },
      /^is draining by its agent, which is being stopped, since .* UTC \(SIGTERM\)$/,
    ],
    sick: [{ ...gpu, intake: { quarantineMs: 60_000 } }, /^is in quarantine until .* UTC: disks fail$/],
    well: [{ ...gpu, intake: { quarantineMs: -1 } }, /^would take it/],
    full: [{ ...gpu, unready: [{ check: 'disk', message: '10 MB are free' }] }, /^is not ready: disk: 10 MB are free$/],
    many: [
      { ...gpu, unready: ['a', 'b', 'c', 'd', 'e'].map((check) => ({ check, message: 'no.' })) },
      /^is not ready: a: no, b: no, c: no, 2 more$/,
    ],
    wordy: [{ ...gpu, unready: [{ check: 'disk', message: 'x'.repeat(5000) }] }, /^is not ready: disk: x{980} …$/],
    plain: [{ labels: ['arm'] }, /^does not carry the label `gpu`$/],
    several: [
      { polled: 600, heard: 300, intake: { state: 'cordoned', ...by } },
      /^does not carry the label `gpu`; is cordoned by ops .*; is offline: /,
    ],
  }
  const ids = new Map<string, string>()
  for (const [name, [facts]] of Object.entries(cases)) {
    ids.set(name, (await anAgentIn(pool, 4, name)).id)
    await set(ids.get(name)!, facts)
  }
  const small = await anAgentIn(pool, 1, 'small')
  await set(small.id, gpu)
  cases.small = [gpu, /^has 1 slot in all, and the run needs 2$/]
  const run = await aRun(c, { workflow })
  const why = await whyOf(run.id)
  const byName = new Map(why.runners.map((runner) => [runner.name, runner]))
  assert.deepEqual([...byName.keys()].sort(), Object.keys(cases).sort())
  for (const [name, [, reason]] of Object.entries(cases)) {
    assert.match(byName.get(name)!.reason, reason)
    assert.equal(byName.get(name)!.takes, byName.get(name)!.reason.startsWith('would take it'), name)
  }
  assert.deepEqual([byName.get('polling')?.id, codesOf(why)], [ids.get('polling'), ['STARTING']])
  assert.match(why.summary, /(polling|well) asks for work/)
})

test('what no runner of the pool could ever do is said first, and where', async () => {
  const whyIn = async (descriptor: object, settings: object, ...runners: (Facts & { slots?: number })[]) => {
    const { pool, workflow } = await aPool({ ...descriptor })
    await c.db`
      update runner_pools
      set settings = ${JSON.stringify(settings)}::text::json
      where name = ${pool} and org_id = ${c.orgId}`
    for (const [i, { slots = 4, ...facts }] of runners.entries())
      await set((await anAgentIn(pool, slots, `r-${i}`)).id, facts)
    return whyOf((await aRun(c, { workflow })).id)
  }
  const none = await whyIn({ labels: ['gpu', 'eu'] }, { labels: ['eu'] }, {}, { labels: ['arm'] })
  assert.deepEqual(codesOf(none), ['LABELS_MISSING'])
  assert.match(
    none.summary,
    /^Its workflow asks for `gpu`, which none of the 2 runners of the pool `pool-\d+` carries\.$/,
  )
  const apart = await whyIn({ labels: ['gpu', 'eu'] }, {}, { labels: ['gpu'] }, { labels: ['eu'] })
  assert.match(apart.summary, /asks for `eu`, `gpu`, and none of .* carries all of them\.$/)
  const large = await whyIn({ slots: 8 }, {}, { slots: 2 }, { slots: 4 })
  assert.deepEqual(codesOf(large), ['SLOTS_MISSING'])
  assert.match(large.summary, /^It needs 8 slots of one runner, and none of .* has more than 4\.$/)
  const boxed = await whyIn({}, { isolation: 'bubblewrap' }, {}, {})
  assert.deepEqual(codesOf(boxed), ['RUNNERS_UNFIT'])
  assert.match(boxed.runners.find((one) => one.name === 'r-0')!.reason, /^cannot run programs in `bubblewrap`/)
  const closed = await whyIn(
    {},
    {},
    { intake: { state: 'cordoned', byKind: 'caller', byName: 'ops' } },
    { polled: null, heard: null },
  )
  assert.deepEqual(codesOf(closed), ['RUNNERS_CLOSED'])
  assert.match(closed.summary, /is given work: r-0 is cordoned by ops since .* UTC\.$/)
})

test('a machine that is not ready is to be mended, not resumed', async () => {
  const { pool, workflow } = await aPool()
  const full = { check: 'disk', message: '0 MiB are free: make room.' }
  await set((await anAgentIn(pool, 4, 'full')).id, { unready: [full, { ...full, check: 'spool' }] })
  const { causes } = await whyOf((await aRun(c, { workflow })).id)
  assert.deepEqual(
    causes.map(({ code }) => code),
    ['RUNNERS_CLOSED'],
  )
  assert.match(
    causes[0]!.message,
    /: full is not ready: disk: 0 MiB are free: make room, spool: 0 MiB are free: make room\.$/,
  )
  assert.match(causes[0]!.change ?? '', /goes on by itself/)
  assert.doesNotMatch(causes[0]!.change ?? '', /resume/)
})

test('where all runners are revoked nobody is told to resume one', async () => {
  const { pool, workflow } = await aPool()
  const gone = await anAgentIn(pool, 4, 'gone')
  await set(gone.id, { intake: { state: 'revoked', byKind: 'caller', byName: 'ops' } })
  const ask = async () => (await whyOf((await aRun(c, { workflow })).id)).causes[0]!.change ?? ''
  assert.match(await ask(), /^Add a runner to the pool/)
  const back = await anAgentIn(pool, 4, 'later')
  await set(back.id, { intake: { state: 'cordoned', byKind: 'caller', byName: 'ops' } })
  assert.match(await ask(), new RegExp(`resume ${back.id}`))
})

test('a run that needs more than is free says so', async () => {
  const { pool, workflow } = await aPool({ slots: 3 })
  const small = (await aWorkflow(c, { slug: `small-of-${pool}`, descriptor: { pool, slots: 2 } })).slug
  const agent = await anAgentIn(pool, 4, 'east-1')
  const link = await agent.connect()
  await aRun(c, { workflow: small })
  const [offer] = await agent.poll(2)
  await link.accept(offer!)
  await set(agent.id, {})
  const why = await whyOf((await aRun(c, { workflow })).id)
  assert.deepEqual(codesOf(why), ['RUNNERS_BUSY'])
  assert.match(why.summary, /has 3 free slots at once; all are busy\. Once it has waited for half a minute/)
  assert.equal(why.runners[0]!.reason, 'has 2 free slots of 4, and the run needs 3')
})

test('who keeps a runner free is told to the run that has it, and to those behind', async () => {
  const { pool, workflow } = await aPool({ slots: 4 })
  const small = (await aWorkflow(c, { slug: `small-of-${pool}`, descriptor: { pool } })).slug
  const agent = await anAgentIn(pool, 4, 'east-1')
  const link = await agent.connect()
  await aRun(c, { workflow: small })
  const [offer] = await agent.poll(1)
  await link.accept(offer!)
  const first = await aRun(c, { workflow: small, priority: -1 })
  const large = await aRun(c, { workflow })
  const behind = await aRun(c, { workflow: small, priority: -2 })
  await c.db`update run_queue set entered_at = now() - interval '40 seconds' where run_id = ${large.id}`
  assert.deepEqual(await agent.poll(3, 100), [])
  await set(agent.id, {})
  const own = await whyOf(large.id)
  assert.deepEqual(codesOf(own), ['RUNNERS_BUSY'])
  assert.match(own.summary, /has 4 free slots at once; all are busy\. The runner east-1 is kept free for it\.$/)
  assert.equal(own.runners[0]!.reason, 'has 3 free slots of 4, and the run needs 4; is kept free for this run')
  const [busy, ahead] = (await whyOf(behind.id)).causes
  assert.deepEqual([busy?.code, busy?.runIds, ahead?.code], ['RUNNERS_BUSY', [large.id], 'RUNS_AHEAD'])
  assert.match(
    busy!.message,
    /has room for it: 1 is kept free for a run that goes before it and needs many slots at once\.$/,
  )
  assert.match(ahead!.change, /^Those that fit a runner are taken there first: /)
  const { runners } = await whyOf(first.id)
  const reason = `is kept free for ${large.id}, which goes before it and needs 4 slots at once`
  assert.deepEqual([runners[0]!.takes, runners[0]!.reason], [false, reason])
  // What goes before it may start there.
  const before = await whyOf((await aRun(c, { workflow: small, priority: 1 })).id)
  assert.deepEqual([codesOf(before), before.runners[0]!.takes], [['STARTING'], true])
  await c.call(ops.runs.cancel, { run: large.id })
  assert.equal((await whyOf(behind.id)).runners[0]!.takes, true)
})

test('a run that came in as its pool was deleted says so, and how the pool comes back', async () => {
  const { pool, workflow } = await aPool()
  const { id } = await aRun(c, { workflow })
  // Another coordinator had seen that there is none.
  await c.db`update runner_pools set deleted_at = now() where name = ${pool} and org_id = ${c.orgId}`
  const why = await whyOf(id)
  assert.deepEqual([codesOf(why), why.summary], [['NO_RUNNER'], `The pool \`${pool}\` was deleted.`])
  assert.match(why.causes[0]!.change, new RegExp(`windlass pools create ${pool}\``))
  await c.call(ops.pools.create, { org: c.org, name: pool })
  assert.equal((await whyOf(id)).summary, `The pool \`${pool}\` has no runner.`)
})
