import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aCoordinatorOfItsOwn } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

test('that the database takes no writes is said by what would write and by /readyz, while it lasts', async (t) => {
  const c = await aCoordinatorOfItsOwn()
  t.after(() => c.stop())
  const { slug } = await aWorkflow(c, { slug: 'any' })
  const [database] = await c.db<{ name: string }[]>`select current_database() as name`
  /** As a failover does it: with new sessions. */
  const become = async (readOnly: boolean) => {
    await c.db.begin('read write', async (tx) => {
      await tx.unsafe(`alter database "${database!.name}" set default_transaction_read_only = ${readOnly}`)
    })
    await c.db`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = ${database!.name} and pid <> pg_backend_pid()`
    await c.db`select pg_terminate_backend(pg_backend_pid())`.catch(() => undefined)
  }
  const asked = async (path: string, init?: RequestInit) => {
    const headers = { authorization: `Bearer ${c.apiKey}`, 'content-type': 'application/json' }
    const answer = await fetch(c.url + path, { ...init, headers })
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), text: await answer.text() }
  }
  const trigger = () => asked(`/v1/orgs/default/workflows/${slug}/runs`, { method: 'POST', body: '{}' })

  await become(true)
  const refused = await untilPolled('writes are refused', async () => {
    const answer = await trigger()
    return answer.text.includes('takes no writes') && answer
  })
  assert.deepEqual([refused.status, refused.retryAfter], [503, '1'])
  const ready = await asked('/readyz')
  assert.equal(ready.status, 503)
  assert.match(ready.text, /takes no writes/)

  await become(false)
  await untilPolled('it is ready again', async () => (await asked('/readyz')).status === 200)
  await untilPolled('writes are taken again', async () => (await trigger()).status < 300)
})
