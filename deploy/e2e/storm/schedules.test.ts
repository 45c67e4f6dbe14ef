// 10,000 schedules of one moment, two coordinators, and one of them killed while they fire.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Cluster, startCluster } from '../_kit/cluster.ts'
import { dueAtOnce } from '../_kit/due-at-once.ts'
import { deploy, programFiles } from '../_kit/runs.ts'

const SCHEDULES = 10_000
/** The last of them is in the queue by then, and no caller waits for longer meanwhile. */
const LAST_MS = 10_000
const TRIGGER_MS = 2000

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
  assert.ok(longest <= TRIGGER_MS, `a trigger took ${longest} ms`)
})
