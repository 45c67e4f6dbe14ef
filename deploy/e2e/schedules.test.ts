// A tick is one run, though two coordinators see it and one of them is killed. With 10,000: storm/schedules.test.ts.
import { after, before, test } from 'node:test'
import { type Cluster, startCluster } from './_kit/cluster.ts'
import { dueAtOnce } from './_kit/due-at-once.ts'
import { deploy, programFiles } from './_kit/runs.ts'

let cluster: Cluster

before(async () => {
  cluster = await startCluster({ coordinators: 2 })
  await deploy(cluster.client, programFiles('healthy', { slug: 'often' }))
})
after(() => cluster?.stop())

test('300 schedules of one moment start one run each while a coordinator is killed', async (t) => {
  const { lastMs } = await dueAtOnce(cluster, 'often', 300)
  t.diagnostic(`the last run was created ${Math.round(lastMs)} ms after the tick`)
})
