// When an agent asks for work again after polls that failed. Its time goes on as the test says.
import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { createBell } from '../../bell.ts'
import { createIntake } from '../../intake.ts'
import { claimLoop } from '../../loops/claim.ts'

/** An agent that is connected, and whose polls all fail. Pauses are the longest that chance may choose. */
function failing(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(Math, 'random', () => 1)
  const end = new AbortController()
  let down = new AbortController()
  let polls = 0
  const claims = () => {
    polls += 1
    return Promise.reject(new Error('503'))
  }
  const link = { isReady: true, down: down.signal }
  const claimBell = createBell()
  const log = Object.assign(() => undefined, { warn: () => undefined })
  const looping = claimLoop(
    {
      claimBell,
      link,
      log,
      intake: createIntake(),
      facts: { isReady: () => true, onChange: () => undefined },
      slots: { free: () => 1 },
      checks: { look: () => Promise.resolve() },
      rest: { claims },
      settings: { current: { pollMs: 25_000 } },
      activity: { polled: () => undefined },
      config: { paces: { unreadyMs: 1, pollLookMs: 100 } },
    } as never,
    end.signal,
  )
  const settle = async () => {
    for (let n = 0; n < 20; n++) await nextTurn()
  }
  return {
    polls: () => polls,
    async after(ms: number) {
      t.mock.timers.tick(ms)
      await settle()
    },
    async disconnect() {
      link.isReady = false
      down.abort()
      await settle()
    },
    async connect() {
      down = new AbortController()
      Object.assign(link, { isReady: true, down: down.signal })
      claimBell.ring()
      await settle()
    },
    async stop() {
      end.abort()
      await looping
    },
  }
}

test('an agent whose polls fail while it is connected asks again every 5 s at least', async (t) => {
  const agent = failing(t)
  await agent.after(0)
  for (let n = 0; n < 10; n++) await agent.after(5_000)
  const before = agent.polls()
  for (let n = 0; n < 10; n++) await agent.after(5_000)
  assert.equal(agent.polls(), before + 10)
  await agent.stop()
})

test('an agent that is connected anew asks at once, and what failed before lengthens no pause', async (t) => {
  const agent = failing(t)
  await agent.after(0)
  for (let n = 0; n < 10; n++) await agent.after(5_000)
  await agent.disconnect()
  const before = agent.polls()
  await agent.after(60_000)
  assert.equal(agent.polls(), before, 'nobody is there to be asked')
  await agent.connect()
  assert.equal(agent.polls(), before + 1)
  await agent.after(500)
  assert.equal(agent.polls(), before + 2)
  await agent.stop()
})
