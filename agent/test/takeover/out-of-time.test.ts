// A program whose time is over may undo what it did. Its agent may be killed before it has come to its end.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { textIn } from '../_kit/text-in.ts'

after(endAgentProcesses)

test('that its time is over is on disk before it hears of it, and told by the next agent', async (t) => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const first = await anAgentProcess(fake.url, folder)
  const undone = path.join(folder, 'undone')
  const body = `
    const { writeFileSync } = await import('node:fs')
    const timer = setInterval(() => {}, 1000)
    given.signal.addEventListener('abort', () => writeFileSync(${JSON.stringify(undone)}, ''))
    await new Promise(() => {})
    clearInterval(timer)`
  const placement = fake.offer(await aProgram(body), { timeoutMs: 500, graceMs: 60_000 })
  await untilPolled('it undoes what it did', () => existsSync(undone))
  assert.match(textIn(path.join(folder, 'spool')), /\["resume",\d+,"timed-out"\]/)
  await first.kill('SIGKILL')
  const next = await anAgent(fake.url, folder)
  t.after(async () => {
    for (let times = 0; times < 3; times++) next.stop()
    await next.done
    await fake.close()
    await remove()
  })
  await until('its end', () => placement.entries.at(-1)?.[0] === 'end')
  const marks = placement.entries.filter(([kind]) => kind === 'resume')
  assert.ok(marks.length > 0)
  for (const [, , why] of marks) assert.equal(why, 'timed-out')
})
