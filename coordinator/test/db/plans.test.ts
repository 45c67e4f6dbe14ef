import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { renewStatistics } from '../../db/statistics.ts'
import { anAgent } from '../_kit/agent.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { dropInvariants } from '../_kit/database.ts'
import { exercise } from '../_kit/exercise.ts'
import { anExplainedOrg } from '../_kit/explained-org.ts'
import { type Executed, type Explained, type PlanNode, stepsOf } from '../_kit/explained.ts'
import { fill } from '../_kit/filled.ts'
import { seedRuns } from '../_kit/seeded-runs.ts'
import type { Tenant } from '../_kit/tenants.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

// Everything that the coordinator sends while one org is used broadly is explained as it happens, so a new statement is
// covered by itself. Plans are made on empty tables, on full ones that the planner knows nothing of, and on full ones
// that were analyzed.

/**
 * This many make the worst plans. At 500 to 4000 rows without statistics the planner believes that an org has a handful
 * of runs, and that an index which begins with the org is as good as the key. At 6000 it no longer does.
 */
const RUNS = 2000
/** A page and what is shown with it, with some rows that are gone. The least that is copied of anything is 150. */
const MOST_ROWS = 120
/** Blocks of 8 KiB: about three for each table that a run is shown with. */
const MOST_BLOCKS = 60

/** What a run leaves when it ends. */
const EMPTIED = ['run_queue', 'placements', 'timers']

/** What may read more, by how the statement begins. */
const EXEMPT: readonly { begins: RegExp; why: string; isSeldom?: true }[] = [
  { begins: /^select b\.oid, b\.typarray/, why: 'postgres.js, once for each connection, from the catalog' },
  { begins: /^select v\.id as version_id, p\.id as pool_id/, why: 'pools of an org, which has few' },
  {
    begins: /^select p\.id, o\.slug as org, p\.name, p\.settings/,
    why: 'counts runners and queue of a pool; pools of an org',
  },
  { begins: /^select (r\.labels|r\.slots), r\.capabilities/, why: 'all runners of a pool: its capacity' },
  { begins: /^select a\.id, a\.at, a\.actor_kind/, why: 'a list: without statistics by another index of the org' },
  {
    begins: /^select a\.id, coalesce\(octet_length\(a\.before/,
    why: 'the sizes of that list: without statistics by another index of the org',
  },
  { begins: /^select w\.id, o\.slug as org, w\.slug/, why: 'a list: without statistics sorted, not read in order' },
  {
    begins: /^select w\.id, w\.slug, w\.name, w\.version, w\.disabled_at/,
    why: 'one by its slug: without statistics by another index of the org',
  },
  { begins: /^with recursive unfinished as/, why: 'metrics: counts all that is open' },
  { begins: /^select count\(\*\)::int as count from environments/, why: 'environments of an org, 200 at most' },
  { begins: /^select count\(\*\)::int as count from runner_pools/, why: 'pools of an org, 500 at most' },
  { begins: /^select count\(\*\)::int as count from \(select from runners/, why: 'runners of an org, 20,000 at most' },
  { begins: /^with concerned as/, why: 'environments of an org, 200 at most' },
  { begins: /^update variable_sets/, why: 'environments of an org, 200 at most' },
  {
    begins: /^with portion as materialized \( select id from registration_tokens/,
    why: 'once an hour; no index is worth it',
  },
  {
    begins: /^select t\.id, t\.pool_id, p\.name as pool, t\.uses_left, t\.created_at/,
    why: 'a list: without statistics sorted, not read in order',
  },
  { begins: /^select min\(position\)/, why: 'when claims are slow, once in ten seconds', isSeldom: true },
  { begins: /^select extract\(epoch from coalesce\(min\(due_at\)/, why: 'the same for timers', isSeldom: true },
  {
    begins: /^select \(select count\(\*\)::int from runners where pool_id/,
    why: 'when a pool is deleted: all workflows of the org',
  },
]

let c: TestCoordinator
let ours: Tenant
let explained: Explained
/** Entries of `EXEMPT` that matched a statement which read more. */
const needed = new Set<RegExp>()

before(async () => {
  ;({ c, ours, explained } = await anExplainedOrg(prepare))
})
after(() => c.stop())

test('statements that were prepared on empty tables read full ones by their keys', async () => {
  await exercise(ours)
  const prepared = explained.take()
  await aWorkflow(c, { slug: 'common' })
  await aWorkflow(c, { slug: 'rare' })
  const workflows = { common: 'common', rare: 'rare' }
  await seedRuns(c.db, { org: c.org, count: RUNS, workflows, analyze: false })
  await fill(c.db, c.orgId)
  explained.take()
  await exercise(ours)
  const executed = explained.take()
  const known = new Set(prepared.map(({ text }) => text))
  assert.ok(known.size > 120, `only ${known.size} statements`)
  judge(executed.filter(({ text }) => known.has(text)))
})

test('so do statements that are prepared on full tables, without statistics and with them', async () => {
  const tenant = await onAnother('second')
  await exercise(tenant)
  judge(explained.take())
  await c.db`analyze`
  await exercise(tenant)
  judge(explained.take())
  tenant.agent.close()
})

test('so do those that are prepared on tables that were empty when they were analyzed', async () => {
  // By day they are full, at night empty: the pages stay.
  await c.db`update pg_class set reltuples = 1 where relname = any(${EMPTIED})`
  // The coordinators look every few seconds.
  await untilPolled('what is full to be known to be', async () => {
    const rows = await c.db`select from pg_class where relname = any(${EMPTIED}) and reltuples < 1000`
    return rows.length === 0
  })
  assert.deepEqual(await renewStatistics(c.db), [])
  const tenant = await onAnother('third')
  await exercise(tenant)
  judge(explained.take())
  tenant.agent.close()
})

/** The org through another coordinator, whose connections have prepared nothing yet. */
async function onAnother(name: string): Promise<Tenant> {
  const other = await c.another()
  other.deps.builder = c.deps.builder
  // Of its own: the runs of the other one are not lost.
  const agent = await anAgent(other, { name })
  const tenant = { ...ours, c: other, agent, link: await agent.connect() }
  explained.take()
  return tenant
}

test('every exempt statement still reads more', () => {
  const usual = EXEMPT.filter(({ isSeldom }) => !isSeldom)
  const spared = usual.map(({ begins }) => begins).filter((begins) => !needed.has(begins))
  assert.deepEqual(spared, [], 'remove from EXEMPT: it reads little now, or is no longer sent')
})

function judge(executed: Executed[]): void {
  const offenders = new Set<string>()
  for (const { text, plan } of executed) {
    const worst = stepsOf(plan).find((step) => rowsOf(step) > MOST_ROWS)
    if (!worst) continue
    const exempt = EXEMPT.find(({ begins }) => begins.test(oneLine(text)))
    if (exempt) needed.add(exempt.begins)
    else offenders.add(`${Math.round(rowsOf(worst))} rows, ${described(worst)}: ${oneLine(text)}`)
  }
  assert.equal([...offenders].join('\n'), '', `statements that read more than ${MOST_ROWS} rows`)
  const looks = executed.filter(({ text }) => oneLine(text).includes('as asked (id, org_id)'))
  assert.ok(looks.length > 0)
  for (const { plan } of looks) assert.ok(blocksOf(plan) <= MOST_BLOCKS, `get run touches ${blocksOf(plan)} blocks`)
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()
const described = (step: PlanNode) =>
  [step['Node Type'], step['Relation Name'], step['Index Name'], step['Index Cond']].filter(Boolean).join(' ')
const blocksOf = (plan: PlanNode) => (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)

/** Rows that a step has looked at, those that it has thrown away with them. */
function rowsOf(step: PlanNode): number {
  const thrown = ['Rows Removed by Filter', 'Rows Removed by Index Recheck', 'Rows Removed by Join Filter'] as const
  return thrown.reduce((sum, name) => sum + (step[name] ?? 0), step['Actual Rows']) * step['Actual Loops']
}

async function prepare(db: TestCoordinator['db']): Promise<void> {
  await dropInvariants(db)
  const tables = await db<{ name: string }[]>`
    select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`
  // Statistics come when the test says so.
  for (const { name } of tables) await db`alter table ${db(name)} set (autovacuum_enabled = off)`
}
