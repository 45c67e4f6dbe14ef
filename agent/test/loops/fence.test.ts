import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import { untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

after(endAgentProcesses)

const STAYS = `console.log(String(process.pid)); await new Promise(() => setInterval(() => {}, 1000))`

async function pidOf(placement: FakePlacement): Promise<number> {
  return Number(await until('the first line', () => linesOf(placement)[0]))
}

test('an agent that was stopped for longer than its fence ends its runs when it wakes, before it says anything of them', async () => {
  const fake = await FakeCoordinator.start({ heartbeatMs: 100, fenceMs: 1000 })
  const { folder, remove } = await aFolder()
  try {
    const agent = await anAgentProcess(fake.url, folder)
    const placement = fake.offer(await aProgram(STAYS))
    const pid = await pidOf(placement)
    await until('a heartbeat', () => fake.heard('heartbeat').some(({ holds }) => holds.length > 0))
    agent.child.kill('SIGSTOP')
    // Nobody can announce this: it is time that an agent sleeps through.
    await pause(1100)
    agent.child.kill('SIGCONT')
    await untilGone('the program', pid)
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'lost')
    assert.match(ending.reason, /lease/)
    assert.match(agent.output(), /runs\.fenced/)
    await agent.kill('SIGKILL')
  } finally {
    await endAgentProcesses()
    await fake.close()
    await remove()
  }
})

/** Leaves the process group, as servers do that a program starts. */
const STARTS_ANOTHER = `
  const { spawn } = await import('node:child_process')
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' })
  console.log(String(process.pid)); console.log(String(other.pid)); await new Promise(() => {})`

test('programs of an agent that stands still are ended at its fence, before it wakes', async () => {
  const fake = await FakeCoordinator.start({ heartbeatMs: 100, fenceMs: 1000 })
  const { folder, remove } = await aFolder()
  try {
    const agent = await anAgentProcess(fake.url, folder)
    const [plain, forked] = [fake.offer(await aProgram(STAYS)), fake.offer(await aProgram(STARTS_ANOTHER))]
    const pids = [await pidOf(plain), await pidOf(forked)]
    pids.push(Number(await until('the second line', () => linesOf(forked)[1])))
    await until('a heartbeat', () => fake.heard('heartbeat').some(({ holds }) => holds.length === 2))
    agent.child.kill('SIGSTOP')
    // It is stopped all the while: only who ends programs after an agent's death can have done it.
    for (const pid of pids) await untilGone('a program', pid)
    agent.child.kill('SIGCONT')
    for (const placement of [plain, forked]) {
      const ending = await fake.ending(placement)
      assert.ok(ending.how === 'lost', ending.how)
      assert.match(ending.reason, /lease/)
    }
    // It goes on as it did, and so does what ends its programs.
    const next = fake.offer(await aProgram(STAYS))
    const pid = await pidOf(next)
    await agent.kill('SIGKILL')
    await untilGone('the next program', pid)
  } finally {
    await endAgentProcesses()
    await fake.close()
    await remove()
  }
})

withAgent(
  'a longer fence counts only once a heartbeat that promised it was answered',
  async ({ fake }) => {
    const placement = fake.offer(await aProgram(STAYS))
    const pid = await pidOf(placement)
    fake.mute.add('heartbeat')
    await until('an unanswered heartbeat', () => fake.heard('heartbeat').length > 0)
    const { n } = fake.heard('heartbeat').at(-1)!
    // It answers one that had promised the shorter one, and is the last word: the lease is no longer for that.
    fake.send({ t: 'beat', n, settings: { ...fake.settings, fenceMs: 60_000 }, stale: [], cancel: [] })
    await until('it is heard of', () => fake.heard('heartbeat').at(-1)?.fenceMs === 60_000)
    await untilGone('the program', pid)
    assert.equal((await fake.ending(placement)).how, 'lost')
  },
  { settings: { heartbeatMs: 100, fenceMs: 1000 } },
)

withAgent(
  'a shorter fence counts at once',
  async ({ fake }) => {
    const placement = fake.offer(await aProgram(STAYS))
    const pid = await pidOf(placement)
    fake.says = { settings: { ...fake.settings, fenceMs: 400 } }
    await until('it is heard of', () => fake.heard('heartbeat').at(-1)?.fenceMs === 400)
    fake.mute.add('heartbeat')
    await untilGone('the program', pid)
    assert.equal((await fake.ending(placement)).how, 'lost')
  },
  { settings: { heartbeatMs: 100, fenceMs: 60_000 } },
)
