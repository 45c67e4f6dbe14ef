import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { testRunVariables } from '@windlass/shared/test/_kit/test-run.ts'
import { DEADLINE_MS, until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'

const TICKS = `for (let n = 1; ; n++) { console.log(process.pid + ' ' + n); await new Promise((r) => setTimeout(r, 2)) }`

async function given(body: (fake: FakeCoordinator, folder: string) => Promise<void>): Promise<void> {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  try {
    await body(fake, folder)
  } finally {
    await endAgentProcesses()
    await fake.close()
    await remove()
  }
}

test('an agent that is killed reports its runs as lost when it starts again, with every event and without its programs', async () => {
  await given(async (fake, folder) => {
    const first = await anAgentProcess(fake.url, folder)
    const placement = fake.offer(await aProgram(TICKS))
    await until('some lines', () => linesOf(placement).length > 5)
    // What follows is written down by the agent and never acknowledged.
    fake.mute.add('entries')
    const had = placement.entries.length
    const heard = fake.heard('entries').length
    await until('more lines on the way', () => fake.heard('entries').length > heard + 20)
    await first.kill('SIGKILL')
    fake.mute.delete('entries')

    const second = await anAgent(fake.url, folder)
    const ending = await fake.ending(placement)
    assert.deepEqual(ending, { how: 'lost', reason: 'the agent was killed' })
    const numbers = linesOf(placement).map((line) => Number(line.split(' ')[1]))
    assert.ok(numbers.length > had + 15, `only ${numbers.length} lines after ${had} entries`)
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    )
    const pid = Number(linesOf(placement)[0]!.split(' ')[0])
    assert.ok(isGone(pid), 'the program of the dead agent lives')
    assert.equal(fake.registrations, 1, 'the second start uses the identity of the first')
    second.stop()
    assert.equal(await second.done, 0)
  })
})

test('a stop waits for programs for a while, then reports them as lost and leaves nothing behind', async () => {
  await given(async (fake, folder) => {
    const agent = await anAgentProcess(fake.url, folder, { WINDLASS_AGENT_STOP_MS: '5000' })
    const slow = fake.offer(await aProgram(TICKS))
    const mayEnd = path.join(folder, 'may-end')
    const quick = fake.offer(
      await aProgram(`const { existsSync } = await import('node:fs'); console.log('begins')
        while (!existsSync('${mayEnd}')) await new Promise((r) => setTimeout(r, 5))
        return 'done'`),
    )
    await until('both run', () => linesOf(slow).length > 0 && linesOf(quick).length > 0)
    const ended = agent.kill('SIGTERM')
    await until('the stop', () => agent.output().includes('agent.stopping'))
    await writeFile(mayEnd, '')
    assert.equal(await ended, 0)
    assert.deepEqual(await fake.ending(quick), { how: 'returned', outputText: '"done"' })
    assert.deepEqual(await fake.ending(slow), { how: 'lost', reason: 'the agent was stopped' })
    assert.equal(existsSync(path.join(folder, 'agent.lock')), false)
  })
})

test('a second agent in the same state folder is refused, and a dead one does not stand in the way', async () => {
  await given(async (fake, folder) => {
    const agent = await anAgentProcess(fake.url, folder)
    await assert.rejects(anAgent(fake.url, folder), /is an agent that works in .*WINDLASS_AGENT_HOME/s)
    await agent.kill('SIGKILL')
    const next = await anAgent(fake.url, folder)
    next.stop()
    assert.equal(await next.done, 0)
  })
})

test('an agent tells its supervisor that it is connected, and stops by itself when that is gone', async () => {
  await given(async (fake, folder) => {
    const env = {
      PATH: process.env.PATH,
      ...testRunVariables(),
      WINDLASS_URL: fake.url,
      WINDLASS_AGENT_HOME: folder,
      WINDLASS_AGENT_TOKEN: 'wlr_good',
    }
    const main = path.join(import.meta.dirname, '../../main.ts')
    const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'inherit', 'ignore', 'ipc'] })
    const [said] = (await once(child, 'message', { signal: AbortSignal.timeout(DEADLINE_MS) })) as [{ ready?: boolean }]
    assert.equal(said.ready, true)
    assert.equal(fake.heard('hello').length, 1)
    child.disconnect()
    const [code] = (await once(child, 'exit')) as [number]
    assert.equal(code, 0)
  })
})

test('a refused token and a missing one end the agent with exit codes of their own', async () => {
  await given(async (fake, folder) => {
    const refused = await anAgentProcess(fake.url, folder, { WINDLASS_AGENT_TOKEN: 'wlr_bad' })
    assert.equal(refused.child.exitCode, 77)
    assert.match(refused.output(), /Mint a new token/)
    const missing = await anAgentProcess(fake.url, folder, { WINDLASS_AGENT_TOKEN: '' })
    assert.equal(missing.child.exitCode, 78)
    assert.match(missing.output(), /WINDLASS_AGENT_TOKEN/)
  })
})
