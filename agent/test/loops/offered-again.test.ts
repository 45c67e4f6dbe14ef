// A database that was set back gives a run out again under the numbers that the agent has ended, or is about to end.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgent, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator, type FakePlacement, linesOf } from '../_kit/fake-coordinator.ts'

/** Says its pid, and returns when there is a file `go` in its workspace. */
const WAITS = `
  const { existsSync } = process.getBuiltinModule('node:fs')
  console.log(String(process.pid))
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  return 1`

after(endAgentProcesses)

const pidOf = (placement: FakePlacement) =>
  until('its first line', () => linesOf(placement)[0]).then((line) => Number(line))

for (const epoch of [1, 2])
  test(`a run that comes again under number ${epoch} while its program is being ended waits for that`, async (t) => {
    const fake = await FakeCoordinator.start()
    const { folder, remove } = await aFolder()
    const agent = await anAgent(fake.url, folder, { WINDLASS_AGENT_ISOLATION: 'process' })
    t.after(async () => {
      agent.stop()
      await agent.done
      await fake.close()
      await remove()
    })
    const program = await aProgram(WAITS)
    const first = fake.offer(program)
    const { run } = first.offer
    const former = await pidOf(first)
    fake.placements.delete(`${run}/1`)
    fake.send({ t: 'stale', runs: [[run, 1]] })
    const second = fake.offer(program, { run, epoch })
    const pid = await pidOf(second)
    assert.ok(isGone(former), 'both execute')
    const beats = fake.heard('heartbeat').length
    const last = () =>
      fake
        .heard('heartbeat')
        .slice(beats + 1)
        .at(-1)
    assert.deepEqual((await until('another heartbeat', last)).holds, [[run, epoch]])
    writeFileSync(`/proc/${pid}/cwd/go`, '')
    assert.equal((await fake.ending(second)).how, 'returned')
    assert.equal(linesOf(second).length, 1)
  })
