// Whoever has the same key of a delivery waits for the one that holds it, and lets nobody else wait.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { aConnection, aReceiverOf, push } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, anOrg, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
})
after(() => c.stop())

const sessionOf = ({ db, orgId }: Pick<TestCoordinator, 'db' | 'orgId'>) => aSession(db, { orgId })

/** How many statements wait for others here. */
const waiting = async () => {
  const [row] = await c.db<[{ n: number }]>`
    select count(*)::int as n
    from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  return row.n
}

/** The other coordinator, which knows nothing of what waits in the first, or the first itself. */
for (const where of ['the same coordinator', 'another one'])
  test(`deliveries of others at ${where} do not wait for a key that waits for the lock of a group`, async () => {
    const there = where === 'another one' ? await c.another() : c
    const hub = await aConnection(c, await sessionOf(c), { kind: 'github' })
    const connections = [{ connection: hub.name, events: ['push'], filter: { kind: 'both' } }]
    const limited = await aWorkflow(c, { descriptor: { concurrency: 1, connections } })
    await aReceiverOf(c, hub.name, ['push'])
    const other = asOwner(there, await anOrg(c))
    const hook = await aHook(other, await sessionOf(other), (await aWorkflow(other)).slug)
    const elsewhere = { ...hub, url: `${there.url}/v1/inbound/${hub.id}` }
    const id = { 'x-github-delivery': `d-${where}` }
    const held = Promise.withResolvers<void>()
    const locked = Promise.withResolvers<void>()
    const holding = c.db.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(hashtextextended(${limited.id}, 0))`
      locked.resolve()
      await held.promise
    })
    await locked.promise
    const answered: number[] = []
    const note = ({ status }: { status: number }) => void answered.push(status)
    const all = [push(hub, '{"kind":"both"}', id).then(note)]
    await untilPolled('it to wait for the lock of the group', async () => (await waiting()) === 1)
    // Each of its lanes gets one that has the same key, and starts what is free.
    for (let n = 2; n <= 3; n++) all.push(push(elsewhere, '{"kind":"one"}', id).then(note))
    for (let n = 0; n < 20; n++) assert.equal((await deliver(hook, { body: `{"n":${n}}` })).status, 200)
    assert.deepEqual(answered, [], 'they still wait')
    held.resolve()
    await holding
    await Promise.all(all)
    assert.deepEqual(answered, [200, 200, 200])
  })
