// The timing of the product as it is: a partition of 90 s takes more than two minutes.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Fleet, startFleet } from '../_kit/fleet.ts'
import { familiesEnded, judge } from '../_kit/fleet-rules.ts'
import { ledgerOf, stretchesOf } from '../_kit/ledger.ts'
import { noHosts } from '../_kit/netns.ts'
import { get } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'
import type { Input } from '../programs/fleet/index.ts'

const skip = noHosts() ?? false
const PARTITION_MS = 90_000
const FENCED_BY_MS = 65_000
const REASSIGNED_FROM_MS = 75_000

let fleet: Fleet

before(async () => {
  if (skip) return
  fleet = await startFleet({
    env: { WINDLASS_AMNESTY_MS: '0' },
    hosts: [{ name: 'anna' }, { name: 'bert' }],
    workflows: { 'fleet-fresh': 'fresh' },
  })
})

after(() => fleet?.stop())

test(
  'a partition of 90 s: the host ends its runs before another begins them, and then is as before',
  { skip, timeout: 290_000 },
  async (t) => {
    const { client, folder, hosts } = fleet
    const part = { lines: 10, takesMs: 15_000 }
    const input: Input = { folder, parts: [part, part, part, part, part] }
    const triggers = Array.from({ length: 6 }, () => client.runs.trigger({ workflow: 'fleet-fresh', input }))
    const ids = (await Promise.all(triggers)).map(({ run }) => run.id)
    await until('all to run', async () =>
      (await Promise.all(ids.map((id) => get(client, id)))).every(({ status }) => status === 'running'),
    )
    await wait(5000)
    const [host] = hosts
    const begun = monotonicMs()
    host!.net.loses({ toHost: 100, fromHost: 100 })
    await wait(PARTITION_MS)
    host!.net.loses({ toHost: 0, fromHost: 0 })
    const runs = await familiesEnded(client, ids, 150_000)
    const judged = await Promise.all(runs.map((run) => judge(client, run)))
    assert.deepEqual(
      judged.flatMap(({ wrong }) => wrong),
      [],
    )
    const moved = runs.filter(({ attempt }) => attempt > 1)
    assert.ok(moved.length > 0, 'no run was on the host that was cut off')
    const stretches = moved.map(({ id }) => stretchesOf(ledgerOf(folder, id)))
    const ended = Math.max(...stretches.map(([first]) => first!.to)) - begun
    const began = Math.min(...stretches.map(([, second]) => second!.from)) - begun
    t.diagnostic(
      `${moved.length} of ${runs.length} runs moved: ended after ${Math.round(ended)} ms, begun elsewhere after ${Math.round(began)} ms`,
    )
    assert.ok(ended < FENCED_BY_MS, `a program went on for ${ended} ms`)
    // Leases count from the last heartbeat before the cut.
    assert.ok(began > REASSIGNED_FROM_MS - 15_000, `begun elsewhere after ${began} ms`)
    const name = host!.name
    const online = async () =>
      (await client.runners.list({})).runners.find((each) => each.name === name)?.status === 'online'
    await until(`${name} to be online`, online, { ms: 30_000 })
    for (const each of hosts) {
      assert.equal(await each.stop(), 0)
      assert.deepEqual(each.net.pids(), [])
    }
  },
)

function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}
