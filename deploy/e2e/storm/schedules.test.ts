// 10,000 schedules of one moment, two coordinators, and one of them killed while they fire.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Cluster, startCluster } from '../_kit/cluster.ts'
import { dueAtOnce } from '../_kit/due-at-once.ts'
import { deploy, programFiles } from '../_kit/runs.ts'

const SCHEDULES = 10_000
/** `npm run bench -- --only schedules` has the seconds; here a busy machine may need several times as many. */
const LAST_MS = 60_000
/** Of the time that all of them take. A caller who stood behind them would wait for all of it. */
const TRIGGER_SHARE = 0.5

let cluster: Cluster

before(async () => {
  cluster = await startCluster({ coordinators: 2 })
  await deploy(cluster.client, programFiles('healthy', { slug: 'often' }))
})
after(() => cluster?.stop())

test('10,000 schedules of one moment start one run each, and hold up nobody', async (t) => {
  const { lastMs, triggerMs, runs } = await dueAtOnce(cluster, 'often', SCHEDULES)
  const longest = Math.max(...triggerMs)
  t.diagnostic(
    `${runs} runs, the last ${Math.round(lastMs)} ms after the tick; ${triggerMs.length} triggers of others, ` +
      `${Math.round(longest)} ms at most`,
  )
  assert.ok(lastMs <= LAST_MS, `the last run was created ${lastMs} ms after the tick`)
  assert.ok(longest <= lastMs * TRIGGER_SHARE, `a trigger took ${longest} ms of ${lastMs}`)
})
