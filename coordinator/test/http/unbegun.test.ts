import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { aCaller, startStub } from './stub-server.ts'

test('a change that failed before its handler was called is sure to be undone, and says so', async (t) => {
  let isAway = true
  const server = await startStub({
    handlers: { 'runs.trigger': () => Promise.reject(new Fault('UNAVAILABLE')) },
    caller: (token) => (isAway ? Promise.reject(new Fault('UNAVAILABLE')) : aCaller(token)),
  })
  t.after(() => server.close())
  const ask = async (method: string) => {
    const body = method === 'POST' ? '{}' : null
    const headers = { authorization: 'Bearer owner', 'content-type': 'application/json' }
    const answer = await fetch(`${server.url}/v1/orgs/acme/${method === 'POST' ? 'workflows/hello/' : ''}runs`, {
      method,
      headers,
      body,
    })
    const { error } = (await answer.json()) as { error: { detail?: { mayBeDone?: boolean } } }
    return [answer.status, error.detail?.mayBeDone]
  }
  assert.deepEqual(await ask('POST'), [503, false])
  // A read changes nothing in any case.
  assert.deepEqual(await ask('GET'), [503, undefined])
  isAway = false
  assert.deepEqual(await ask('POST'), [503, undefined])
})
