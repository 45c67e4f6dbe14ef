import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aCoordinatorOfItsOwn } from '../_kit/coordinator.ts'
import { becomeReadOnly } from '../_kit/read-only.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

test('that the database takes no writes is said by what would write and by /readyz, while it lasts', async (t) => {
  const c = await aCoordinatorOfItsOwn()
  t.after(() => c.stop())
  const { slug } = await aWorkflow(c, { slug: 'any' })
  const asked = async (path: string, init?: RequestInit) => {
    const headers = { authorization: `Bearer ${c.apiKey}`, 'content-type': 'application/json' }
    const answer = await fetch(c.url + path, { ...init, headers })
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), text: await answer.text() }
  }
  const trigger = () => asked(`/v1/orgs/default/workflows/${slug}/runs`, { method: 'POST', body: '{}' })

  await becomeReadOnly(c, true)
  const refused = await untilPolled('writes are refused', async () => {
    const answer = await trigger()
    return answer.text.includes('takes no writes') && answer
  })
  assert.deepEqual([refused.status, refused.retryAfter], [503, '1'])
  const ready = await asked('/readyz')
  assert.equal(ready.status, 503)
  assert.match(ready.text, /takes no writes/)

  await becomeReadOnly(c, false)
  await untilPolled('it is ready again', async () => (await asked('/readyz')).status === 200)
  await untilPolled('writes are taken again', async () => (await trigger()).status < 300)
})
