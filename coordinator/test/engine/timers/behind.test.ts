// What may take long when it is due is done behind the timers of others, and each org has its turn in it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anAgent, type Link, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, type TestCoordinator } from '../../_kit/coordinator.ts'
import { untilPolled } from '../../_kit/until.ts'
import { aParkedRun, question, sleepFor } from '../../_kit/waiting.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

interface Tenant {
  c: TestCoordinator
  agent: TestAgent
  link: Link
}

let [loud, quiet]: Tenant[] = []

async function aTenant(c: TestCoordinator): Promise<Tenant> {
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c)
  return { c, agent, link: await agent.connect() }
}

before(async () => {
  loud = await aTenant(await aCoordinatorOfItsOwn({ LOG_LEVEL: 'error' }))
  quiet = await aTenant(asOwner(loud.c, await anOrg(loud.c)))
})
after(async () => {
  for (const tenant of [loud, quiet]) tenant?.agent.close()
  await loud!.c.stop()
})

/** A sleeping run with so many entries, by its row. */
async function ofEntries({ c }: Tenant, entries: number): Promise<string> {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db`update runs set entries = ${entries} where id = ${id}`
  return id
}

// 300 answers of 1 MB each of one org: of 300 sleeps of another one 258 were more than 2 s late.
test('sleeps do not wait for large default answers', async () => {
  const { db } = loud!.c
  const ask = question({ onTimeoutText: `"${'x'.repeat(1_000_000)}"`, timeoutMs: 3_600_000 })
  const asks: string[] = []
  for (let i = 0; i < 2; i++) asks.push((await aParkedRun(loud!, { workflow: 'any' }, ask, ask, ask)).run)
  const sleeps = Array.from({ length: 10 }, () => sleepFor())
  const own = await aParkedRun(loud!, { workflow: 'any' }, ...sleeps)
  const others = await aParkedRun(quiet!, { workflow: 'any' }, ...sleeps)
  await db`
    update timers
    set due_at = now() - case kind when 'input' then interval '1 minute' else interval '1 second' end
    where run_id = any(${[...asks, own.run, others.run]}) and kind in ('input', 'sleep')`
  loud!.c.deps.floors.timers.lower(Date.now() - 120_000)
  loud!.c.deps.timers.expect(0)
  await untilPolled('all are over', async () => {
    const open = await db`select from journal where run_id = any(${[...asks, own.run, others.run]}) and state = 'open'`
    return open.length === 0
  })
  for (const { run } of [own, others]) {
    // One moment is one transaction.
    const [commits] = await db<{ count: number }[]>`
      select count(distinct completed_at)::int as count from journal where run_id = ${run}`
    assert.equal(commits!.count, 1)
  }
})

// Another org's run went on for 70 s beyond its time, beside 3,000 runs with shorter journals.
test('runs with longer journals do not wait until all shorter ones of another org have ended', async () => {
  const { db, deps } = loud!.c
  const many: string[] = []
  for (let i = 0; i < 8; i++) many.push(await ofEntries(loud!, 250))
  const one = await ofEntries(quiet!, 300)
  await db`
    insert into timers (run_id, org_id, kind, n, due_at)
    select id, org_id, 'wall-timeout', 0, now() - interval '1 minute' from runs where id = any(${[...many, one]})
    on conflict (run_id, kind, n) do update set due_at = excluded.due_at`
  deps.floors.timers.lower(Date.now() - 120_000)
  deps.timers.expect(0)
  await untilPolled('all have ended', async () => {
    const ended = await db`select from runs where id = any(${[...many, one]}) and finished_at is not null`
    return ended.length === 9
  })
  const [sooner] = await db<{ count: number }[]>`
    select count(*)::int as count
    from runs
    where id = any(${many}) and finished_at < (select finished_at from runs where id = ${one})`
  assert.ok(sooner!.count <= 2, `${sooner!.count} before it`)
})
