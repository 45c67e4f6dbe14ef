import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { fireDue } from '../../../engine/commit/fire.ts'
import { type PassedOver, putOff, upcoming } from '../../../engine/store/timers.ts'
import { hear } from '../../_kit/ageing.ts'
import { anAgent, end, type Link, returned, takeNext, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { asks, goesOn, identity, parked, said, sleeps, wakeOf } from '../../_kit/journal.ts'
import { rowsRead } from '../../_kit/rows-read.ts'
import { until, untilPolled } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinatorOfItsOwn({ LOG_LEVEL: 'error' })
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

test('a sleep until a moment that has passed is over at once', async () => {
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const until: Parameters<typeof link.report>[2] = [
    'j',
    1,
    JSON.stringify({
      op: 'open',
      entry: { n: 1, position: 1, parent: '', kind: 'sleep', name: '', hash: 'h', occurrence: 1, args: '[]', site: '' },
      ask: { for: 'sleep', until: 0 },
    }),
  ]
  await link.report(offer, 2, until, parked('sleep'))
  assert.deepEqual((await wakeOf(link, offer)).completions, [{ n: 1, state: 'done', result: 'null' }])
  await link.report(offer, 4, goesOn(), end(returned(null), 1))
})

test('a question that times out fails its call, and takes no answer any more', async () => {
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, asks(1, 'Still there?', 30), parked('input'))
  const [completion] = (await wakeOf(link, offer)).completions
  const error = JSON.parse(completion!.result) as { code: string; message: string }
  assert.deepEqual([completion!.state, error.code], ['failed', 'INPUT_TIMED_OUT'])
  assert.match(error.message, /Still there\?/)
  const [row] = await c.db<{ status: string }[]>`select status from inputs where run_id = ${offer.run}`
  assert.equal(row!.status, 'timed_out')
  await link.report(offer, 4, goesOn(), end(returned(null), 1))
})

test('two coordinators fire timers once, and in the order in which they were due', async () => {
  const other = await c.another()
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  await link.report(offer, 2, ...Array.from({ length: 50 }, (_, i) => sleeps(i + 1, 80 - i)), parked('sleep'))
  other.deps.timers.expect(20)
  const counted = await until('all sleeps to be over', async () => {
    const rows = await c.db<{ n: number }[]>`
      select n from journal where run_id = ${offer.run} and state = 'done' order by completion`
    return rows.length === 50 && rows
  })
  // The last one called has the shortest sleep.
  assert.deepEqual(
    counted.map((row) => row.n),
    Array.from({ length: 50 }, (_, i) => 50 - i),
  )
  assert.deepEqual([...(await c.db`select 1 from timers where run_id = ${offer.run}`)], [])
  await link.report(offer, 53, goesOn(), end(returned(null), 1))
})

// 300 MB of answers in one transaction took 2 GB, and the timers of others came 13 s late.
test('large default answers that are due at once are given a few at a time', async () => {
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const ask = { for: 'input', prompt: 'Q?', schemaText: null, timeoutMs: 3_600_000 } as const
  const onTimeoutText = `"${'x'.repeat(1024 * 1024)}"`
  const questions = Array.from({ length: 10 }, (_, i) =>
    said({ op: 'open', entry: identity(i + 1, 'input', { name: 'Q?' }), ask: { ...ask, onTimeoutText } }),
  )
  for (const [i, question] of questions.entries()) await link.report(offer, i + 2, question)
  await link.report(offer, 12, parked('input'))
  await c.db`update timers set due_at = now() where run_id = ${offer.run} and kind = 'input'`
  c.deps.timers.expect(0)
  // The other coordinator takes some of them.
  await untilPolled('all are over', async () => {
    const open = await c.db`select from journal where run_id = ${offer.run} and state = 'open'`
    return open.length === 0
  })
  const commits = await c.db<{ bytes: number }[]>`
    select sum(octet_length(result))::float8 as bytes
    from journal
    where run_id = ${offer.run} and state = 'done'
    group by completed_at`
  assert.ok(commits.length >= 3, `${commits.length} commits`)
  assert.ok(commits.every(({ bytes }) => bytes <= 3 * 1024 * 1024))
  await link.report(offer, 13, goesOn(), end(returned(null), 1))
})

test('a runner hears once of all its runs whose time is over, and timers of others do not wait for that', async () => {
  const offers = []
  for (let i = 0; i < 3; i++) {
    await aRun(c, { workflow: 'any' })
    offers.push(await takeNext(agent, link))
  }
  await hear(c, ...offers.map(({ run }) => run))
  await c.db`
    insert into timers (run_id, org_id, kind, due_at)
    select id, org_id, 'wall-timeout', now() from runs where id = any(${offers.map(({ run }) => run)})
    on conflict (run_id, kind, n) do update set due_at = now()`
  const runnerIds: string[] = []
  await fireDue({
    ...c.deps,
    tellCancels(runnerId) {
      runnerIds.push(runnerId)
      return new Promise(() => {})
    },
  })
  // The coordinator itself may have been faster.
  assert.ok(runnerIds.length <= 1, `${runnerIds.length} times`)
  for (const offer of offers) await link.report(offer, 2, end({ how: 'timed-out', timeoutMs: 1 }))
  for (const { run } of offers) assert.equal((await runOf(c, run)).error?.code, 'RUN_TIMED_OUT')
})

test('sleeps that came due while nobody looked are over in their order, in one batch', async () => {
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const count = 40
  await link.report(offer, 2, ...Array.from({ length: count }, (_, i) => sleeps(i + 1, 3_600_000)), parked('sleep'))
  await c.db`update timers set due_at = now() - n * interval '1 second' where run_id = ${offer.run}`
  c.deps.timers.expect(0)
  const { completions } = await wakeOf(link, offer)
  assert.deepEqual(
    completions.map(({ n }) => n),
    Array.from({ length: count }, (_, i) => count - i),
  )
  await link.report(offer, count + 3, goesOn(), end(returned(null), 1))
})

// All that were put off together had one time then, and the sleep that was called first came first.
test('sleeps that are put off keep their order', async () => {
  const rollback = new Error('nothing of it stays')
  const looking = c.db.begin(async (tx) => {
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      select 'run_put_off', 'org_put_off', 'sleep', n, now() - n * interval '1 second' from generate_series(1, 5) as n`
    const found = async () => (await upcoming(tx as never, 100)).filter(({ runId }) => runId === 'run_put_off')
    await putOff(tx as never, await found(), -1000)
    assert.deepEqual(
      (await found()).map(({ n }) => n),
      [5, 4, 3, 2, 1],
    )
    throw rollback
  })
  await assert.rejects(looking, rollback)
})

// 170,000 sleeps that were over kept the sleep of another org from ending for two minutes.
test('orgs take turns at what is due, and each its most overdue first', async () => {
  const rollback = new Error('nothing of it stays')
  const looking = c.db.begin(async (tx) => {
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      select 'run_loud', 'org_loud', 'sleep', n, now() - interval '1 hour' + n * interval '1 second'
      from generate_series(1, 1000) as n`
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      values
        ('run_quiet', 'org_quiet', 'sleep', 1, now()),
        ('run_later', 'org_later', 'sleep', 1, now() + interval '1 s')`
    const found = await upcoming(tx as never, 100)
    assert.deepEqual(
      found.slice(0, 4).map(({ runId, n }) => [runId, n]),
      [
        ['run_loud', 1],
        ['run_quiet', 1],
        ['run_loud', 2],
        ['run_loud', 3],
      ],
    )
    assert.equal(found.length, 100)
    await tx`delete from timers where run_id = 'run_loud'`
    const left = await upcoming(tx as never, 100)
    assert.deepEqual(
      left.filter(({ runId }) => runId.startsWith('run_q') || runId === 'run_later').map(({ inMs }) => inMs > 0),
      [false, true],
    )
    throw rollback
  })
  await assert.rejects(looking, rollback)
})

// A look that brought 200 timers took 0.8 s with 500 orgs, and each pass after an outage as long.
test('a look reads little more than it brings, however many orgs have something due', async () => {
  const rollback = new Error('nothing of it stays')
  const looking = c.db.begin(async (tx) => {
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      select 'run_' || o, 'org_' || o, 'sleep', n, now() - interval '1 second'
      from generate_series(1, 100) as o, generate_series(1, 100) as n`
    const here = { begin: (act: (sql: typeof tx) => unknown) => act(tx) } as never
    const { found, read } = await rowsRead(here, 'timers', (db) => upcoming(db, 100))
    assert.equal(found, 100)
    assert.ok(read < 2500, `${read} rows were read`)
    throw rollback
  })
  await assert.rejects(looking, rollback)
})

// No sleep of an org ended for 70 s, behind 3,000 of its runs whose time was over.
test('what is passed over hides nothing that is due later', async () => {
  const rollback = new Error('nothing of it stays')
  const looking = c.db.begin(async (tx) => {
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      select 'run_' || kind, 'org_loud', kind, n, now() - interval '1 hour' + n * interval '1 second'
      from unnest(array['wall-timeout', 'queue-timeout', 'input']) as kind, generate_series(1, 100) as n`
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      values ('run_busy', 'org_loud', 'sleep', 1, now() - interval '1 minute'),
             ('run_last', 'org_loud', 'sleep', 1, now()),
             ('run_other', 'org_quiet', 'wall-timeout', 1, now()),
             ('run_asks', 'org_quiet', 'input', 1, now() + interval '1 second')`
    const found = async (passed: Partial<PassedOver>) => {
      const nothing = { endsOf: [], endsOfRuns: [], questionsOf: [], wakesOf: [], runs: [], runsOf: [] }
      const timers = await upcoming(tx as never, 10, { ...nothing, ...passed })
      return [...new Set(timers.map(({ runId }) => runId))].filter((id) => id !== 'run_asks').toSorted()
    }
    const loud = ['org_loud' as OrgId]
    assert.deepEqual(await found({}), ['run_input', 'run_other', 'run_queue-timeout', 'run_wall-timeout'])
    assert.deepEqual(await found({ endsOf: loud }), ['run_input', 'run_other'])
    assert.deepEqual(await found({ questionsOf: loud }), ['run_other', 'run_queue-timeout', 'run_wall-timeout'])
    const both = { endsOf: loud, questionsOf: loud }
    assert.deepEqual(await found(both), ['run_busy', 'run_last', 'run_other'])
    assert.deepEqual(await found({ ...both, runs: ['run_busy' as RunId] }), ['run_last', 'run_other'])
    assert.deepEqual(await found({ ...both, wakesOf: loud }), ['run_other'])
    const endsOfRuns = ['run_wall-timeout', 'run_queue-timeout', 'run_busy'] as RunId[]
    assert.deepEqual(await found({ questionsOf: loud, endsOfRuns }), ['run_busy', 'run_last', 'run_other'])
    throw rollback
  })
  await assert.rejects(looking, rollback)
})

// Ten runs of an org with 24,000 sleeps each that are due.
test('of an org of whose runs some are passed over no more than 10,000 timers are read', async () => {
  const rollback = new Error('nothing of it stays')
  const looking = c.db.begin(async (tx) => {
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      select 'run_long', 'org_loud', 'sleep', n, now() - interval '1 hour' from generate_series(1, 20000) as n`
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      values ('run_short', 'org_loud', 'sleep', 1, now() - interval '2 hours'),
             ('run_other', 'org_quiet', 'sleep', 1, now())`
    const here = { begin: (act: (sql: typeof tx) => unknown) => act(tx) } as never
    const passed = { endsOf: [], endsOfRuns: [], questionsOf: [], wakesOf: [], runs: ['run_long' as RunId] }
    const { found, read } = await rowsRead(here, 'timers', (db) =>
      upcoming(db, 10, { ...passed, runsOf: ['org_loud' as OrgId] }),
    )
    assert.equal(found, 2)
    assert.ok(read <= 10_100, `${read} rows were read`)
    throw rollback
  })
  await assert.rejects(looking, rollback)
})
