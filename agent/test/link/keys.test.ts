import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { answer } from '../_kit/http.ts'
import { withAgent } from '../_kit/with-agent.ts'

after(endAgentProcesses)

const identityIn = (folder: string) => JSON.parse(readFileSync(path.join(folder, 'identity.json'), 'utf8'))

withAgent(
  'a key that has reached its age is replaced, again and again, and the agent goes on working',
  async ({ fake, folder }) => {
    const first = identityIn(folder).privateKey.x
    await until('three new keys', () => fake.runners.renewed.length >= 3)
    assert.equal(new Set([first, ...fake.runners.renewed]).size, fake.runners.renewed.length + 1)
    fake.cut()
    assert.equal((await fake.ending(fake.offer(await aProgram(`return 1`)))).how, 'returned')
    assert.equal(fake.unauthenticated, 0)
  },
  { settings: { renewKeyMs: 300 } },
)

withAgent('without a word about the age of keys none is replaced', async ({ fake }) => {
  assert.equal((await fake.ending(fake.offer(await aProgram(`return 1`)))).how, 'returned')
  assert.deepEqual(fake.runners.renewed, [])
})

withAgent(
  'a renewal that is refused leaves the present key in force, and is tried again',
  async ({ fake, agent }) => {
    let refused = 0
    fake.runners.onRenew = (response, take) => {
      if (++refused === 1) return answer(response, 503, { error: { code: 'UNAVAILABLE', message: 'later' } })
      take()
      answer(response, 200, { runner: agent.runner, renewAfterMs: 1 })
    }
    await until('the second try', () => fake.runners.renewed.length > 0)
    assert.ok(agent.lines.some(({ name }) => name === 'key.renewal.failed'))
    assert.equal((await fake.ending(fake.offer(await aProgram(`return 1`)))).how, 'returned')
  },
  { settings: { renewKeyMs: 300 } },
)

for (const isTaken of [false, true]) {
  test(`an agent that is killed while its new key is ${isTaken ? 'taken and not yet acknowledged' : 'on its way'} comes back with one that serves`, async () => {
    const fake = await FakeCoordinator.start({ renewKeyMs: 200 })
    const { folder, remove } = await aFolder()
    let asked = 0
    fake.runners.onRenew = (_response, take) => {
      asked += 1
      if (isTaken) take()
    }
    try {
      const agent = await anAgentProcess(fake.url, folder)
      await until('the renewal', () => asked > 0)
      const { privateKey, nextKey } = identityIn(folder)
      assert.notEqual(nextKey.x, privateKey.x, 'the new key is on disk before it is asked for')
      await agent.kill('SIGKILL')
      fake.runners.onRenew = undefined
      const again = await anAgent(fake.url, folder)
      await until('the new key to be in force', () => identityIn(folder).privateKey.x === nextKey.x)
      assert.equal(fake.runners.renewed[0], nextKey.x)
      fake.cut()
      assert.equal((await fake.ending(fake.offer(await aProgram(`return 1`)))).how, 'returned')
      assert.equal(fake.unauthenticated, 0)
      again.stop()
      assert.equal(await again.done, 0)
    } finally {
      await endAgentProcesses()
      await fake.close()
      await remove()
    }
  })
}

test('an identity of before, which does not say since when, is renewed at once and loses nothing', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  try {
    const first = await anAgent(fake.url, folder)
    first.stop()
    await first.done
    const { keyAt, ...before } = identityIn(folder)
    assert.ok(Math.abs(keyAt - Date.now()) < 60_000)
    writeFileSync(path.join(folder, 'identity.json'), JSON.stringify(before))
    fake.settings.renewKeyMs = 3_600_000
    const agent = await anAgent(fake.url, folder)
    await until('the new key', () => identityIn(folder).keyAt > keyAt)
    const { runner, org, pool } = identityIn(folder)
    assert.deepEqual({ runner, org, pool }, { runner: before.runner, org: before.org, pool: before.pool })
    agent.stop()
    await agent.done
  } finally {
    await fake.close()
    await remove()
  }
})
