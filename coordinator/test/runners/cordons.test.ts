import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunnerId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Sql, Tx } from '../../db/client.ts'
import { noteUnaccepted } from '../../runners/intake.ts'
import { liftCordons } from '../../runners/store-cordons.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, anOrg, asOwner } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'

test('runners of several orgs are cordoned in one transaction, each with its entry in the log', async (t) => {
  const asleep = await aCoordinatorOfItsOwn({ SWEEP_MS: 3_600_000 })
  t.after(() => asleep.stop())
  const second = asOwner(asleep, await anOrg(asleep))
  const ids: RunnerId[] = []
  for (const each of [asleep, asleep, second]) {
    const agent = await anAgent(each)
    t.after(() => agent.close())
    ids.push(agent.id)
  }
  await noteUnaccepted(asleep.deps, ids)
  await asleep.call(ops.runners.drain, { runner: ids[0]! })
  const begin = t.mock.method(asleep.deps.db, 'begin')
  await noteUnaccepted(asleep.deps, ids)
  assert.equal(begin.mock.callCount(), 1)
  const rows = await asleep.db`
    select a.target_id, a.org_id = r.org_id as is_own, i.state, i.cordons
    from runner_intake i
    join runners r on r.id = i.runner_id
    left join audit_log a on a.target_id = r.id and a.action = 'runners.cordon'
    order by i.runner_id`
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    ids.map((id, n) =>
      n === 0
        ? { targetId: null, isOwn: null, state: 'draining', cordons: 0 }
        : { targetId: id, isOwn: true, state: 'cordoned', cordons: 1 },
    ),
  )
})

test('the look for cordons to lift reads these alone, however many runners get work', async (t) => {
  const asleep = await aCoordinatorOfItsOwn({ SWEEP_MS: 3_600_000 })
  t.after(() => asleep.stop())
  const agent = await anAgent(asleep)
  t.after(() => agent.close())
  const { db } = asleep
  await db`
    with made as (
      insert into runners (id, org_id, pool_id, name, public_key, slots, version, platform)
      select 'rnr_' || lpad(n::text, 26, '0'), org_id, pool_id, n::text, '{}', 1, 'test', 'linux'
      from runners, generate_series(1, 3000) n
      where id = ${agent.id}
      returning id
    )
    insert into runner_intake (runner_id) select id from made`
  await db`analyze runner_intake`
  await noteUnaccepted(asleep.deps, [agent.id])
  await noteUnaccepted(asleep.deps, [agent.id])
  await db`update runner_intake set since = now() - interval '61 s' where runner_id = ${agent.id}`
  const lift = (tx: Sql) => liftCordons(tx as Tx, { name: 'coordinator', limit: 10 })
  const { found, read } = await rowsRead(db, 'runner_intake', lift)
  assert.equal(found, 1)
  assert.ok(read < 20, `${read} rows`)
})
