// 600 requests of one run at once, with its token, kept the triggers of other orgs waiting for more than a second.
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { pathOf, startStub, type StubServer } from './stub-server.ts'

const RUN = { id: 'run_1', status: 'running', attempt: 1, epoch: 1 }

let server: StubServer
afterEach(() => server.close())

const ask = () => fetch(server.url + pathOf(ops.runnerSurface.self), { headers: { authorization: 'Bearer program' } })

test('a run asks 120 times a minute with its token, and is told when it may go on', async () => {
  let asked = 0
  server = await startStub({ handlers: { 'runnerSurface.self': () => (asked++, { run: RUN }) }, strict: false })
  for (let n = 0; n < 120; n++) assert.equal((await ask()).status, 200)
  const refused = await ask()
  const { error } = (await refused.json()) as { error: { code: string; detail: object } }
  assert.deepEqual([refused.status, refused.headers.get('retry-after'), error.code], [429, '60', 'RATE_LIMITED'])
  assert.deepEqual(error.detail, { scope: 'run', limit: 120, windowMs: 60_000, retryAfterMs: 60_000 })
  assert.equal(asked, 120)
})

test('runs of an org ask two at a time', async () => {
  const begun: (() => void)[] = []
  const self = () =>
    new Promise((resolve) => {
      begun.push(() => resolve({ run: RUN }))
      announce()
    })
  server = await startStub({ handlers: { 'runnerSurface.self': self }, strict: false })
  const answers = Array.from({ length: 5 }, ask)
  let most = 0
  for (let ended = 0; ended < 5; ended++) {
    await until('the next to begin', () => begun.length > ended)
    most = Math.max(most, begun.length - ended)
    begun[ended]!()
    await Promise.race(answers)
  }
  for (const answer of answers) assert.equal((await answer).status, 200)
  assert.ok(most <= 2, `${most} at once`)
})
