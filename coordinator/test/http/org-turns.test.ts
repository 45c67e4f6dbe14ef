import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { untilPolled } from '../_kit/until.ts'
import { startStub, type StubOptions } from './stub-server.ts'

/** A stub whose row holds every call until it is let go. */
async function holding(id: string, answer: object, others: StubOptions['handlers'] = {}) {
  const held: (() => void)[] = []
  let begun = 0
  const server = await startStub({
    strict: false,
    handlers: {
      ...others,
      [id]: () => {
        begun++
        return new Promise((resolve) => held.push(() => resolve(answer)))
      },
    },
  })
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, {
      ...init,
      headers: { authorization: 'Bearer owner', 'content-type': 'application/json' },
    })
  return { server, ask, held, begun: () => begun }
}

test('variables of an org are set one after the other', async (t) => {
  const { server, ask, held, begun } = await holding('variables.set', {})
  t.after(() => server.close())
  const set = (name: string) => ask(`/v1/orgs/acme/variables/${name}`, { method: 'PUT', body: '{"value":"1"}' })
  const both = [set('A'), set('B')]
  await untilPolled('one to begin', () => begun() === 1)
  await ask('/healthz')
  assert.equal(begun(), 1)
  held[0]!()
  await untilPolled('the other to begin', () => begun() === 2)
  held[1]!()
  for (const answer of both) assert.equal((await answer).status, 200)
})

test('three lists of an org are read at once', async (t) => {
  const { server, ask, held, begun } = await holding('runs.list', { runs: [], nextCursor: null })
  t.after(() => server.close())
  const all = Array.from({ length: 6 }, () => ask('/v1/orgs/acme/runs'))
  await untilPolled('three to begin', () => begun() === 3)
  for (let n = 0; n < 6; n++) {
    await untilPolled('one that may end', () => held.length > n)
    assert.ok(begun() - n <= 3)
    held[n]!()
    await untilPolled('the next', () => begun() >= Math.min(6, 4 + n))
  }
  for (const answer of all) assert.equal((await answer).status, 200)
})

test('nothing is read for those who have left while they waited for their turn', async (t) => {
  const { server, ask, held, begun } = await holding('runs.list', { runs: [], nextCursor: null })
  t.after(() => server.close())
  const first = Array.from({ length: 3 }, () => ask('/v1/orgs/acme/runs'))
  await untilPolled('three to begin', () => begun() === 3)
  const left = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = connect(server.port, '127.0.0.1')
      await once(socket, 'connect')
      socket.write('GET /v1/orgs/acme/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer owner\r\n\r\n')
      return socket
    }),
  )
  // Comes after them, as it waits for its answer.
  await ask('/healthz')
  const last = ask('/v1/orgs/acme/runs')
  await Promise.all(
    left.map((socket) => {
      const closed = once(socket, 'close')
      socket.destroy()
      return closed
    }),
  )
  await ask('/healthz')
  for (const end of held) end()
  await untilPolled('the last to begin', () => begun() === 4)
  held[3]!()
  for (const answer of [...first, last]) assert.equal((await answer).status, 200)
  assert.equal(begun(), 4)
  assert.deepEqual(
    server.logged.filter(({ level }) => level !== 'debug' && level !== 'info'),
    [],
    'whoever leaves is no failure of ours',
  )
})

test('who waits for a turn while the server stops is told to come again, and nothing has failed', async () => {
  const { server, ask, held, begun } = await holding('runs.list', { runs: [], nextCursor: null })
  const all = Array.from({ length: 4 }, () => ask('/v1/orgs/acme/runs'))
  await untilPolled('three to begin', () => begun() === 3)
  await ask('/healthz')
  const closed = server.close()
  for (const end of held) end()
  const statuses = (await Promise.all(all)).map(({ status }) => status)
  await closed
  assert.deepEqual(
    statuses.toSorted((a, b) => a - b),
    [200, 200, 200, 503],
  )
  assert.deepEqual(
    server.logged.filter(({ level }) => level === 'error'),
    [],
  )
})

test('of what else an org asks three are answered at once', async (t) => {
  const { server, ask, held, begun } = await holding('runs.input', {})
  t.after(() => server.close())
  const id = 'run_01jd0000000000000000000000'
  const all = Array.from({ length: 4 }, () => ask(`/v1/runs/${id}/input`))
  await untilPolled('three to begin', () => begun() === 3)
  await ask('/healthz')
  assert.equal(begun(), 3)
  held[0]!()
  await untilPolled('the fourth to begin', () => begun() === 4)
  for (const end of held) end()
  for (const answer of all) assert.ok((await answer).status < 500)
})

test('what stops something is not behind the calls of its org, however many these are', async (t) => {
  const stops = {
    'keys.revoke': () => ({ schedules: 0, registrationTokens: 0, jobs: 0 }),
    'schedules.update': () => ({ schedule: {} }),
  }
  const { server, ask, held, begun } = await holding('schedules.run', { run: {} }, stops)
  t.after(() => server.close())
  const schedule = `/v1/schedules/${newId('sch')}`
  const all = Array.from({ length: 10 }, () => ask(`${schedule}/run`, { method: 'POST', body: '{}' }))
  await untilPolled('three to begin', () => begun() === 3)
  const revoke = () => ask(`/v1/orgs/acme/api-keys/${newId('key')}`, { method: 'DELETE' })
  const change = (what: object) => ask(schedule, { method: 'PATCH', body: JSON.stringify(what) })
  assert.equal((await revoke()).status, 200)
  assert.equal((await change({ enabled: false })).status, 200)
  let changed = 0
  // Not even in part: whoever changes more waits like everybody else, as an input may be judged for long.
  const others = [{ enabled: false, input: {} }, { enabled: true }, { input: {} }].map(async (what) => {
    assert.equal((await change(what)).status, 200)
    changed++
  })
  assert.equal((await revoke()).status, 200)
  assert.equal(changed, 0)
  for (let n = 0; n < 10; n++) {
    await untilPolled('one that may end', () => held.length > n)
    held[n]!()
  }
  await Promise.all([...all, ...others])
})
