// An agent starts in a copy of a state folder, on the machine of the original, whose agent was killed.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { abandoned } from './abandoned.ts'

const PROGRAM = `
  const { existsSync } = process.getBuiltinModule('node:fs')
  console.log(String(process.pid))
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  console.log('went on')
  return 1`

after(endAgentProcesses)

test('the programs of the original are guarded on, and go on with its next agent', async (t) => {
  // The coordinator has no welcome for the copy.
  const scene = await abandoned(t, PROGRAM, {}, ({ fake }) => fake.mute.add('hello'))
  const { fake, folder, placement, pid } = scene
  const reaper = JSON.parse(readFileSync(path.join(folder, 'lives', 'reaper'), 'utf8')) as { pid: number }
  const copy = `${folder}-copy`
  t.after(() => rmSync(copy, { recursive: true, force: true, maxRetries: 3 }))
  execFileSync('cp', ['-a', folder, copy])
  const agent = await anAgentProcess(fake.url, copy, { WINDLASS_AGENT_ISOLATION: 'process' })
  await agent.kill('SIGKILL')
  assert.ok(!isGone(reaper.pid) && !isGone(pid))
  fake.mute.delete('hello')
  await scene.takeOver()
  writeFileSync(`/proc/${pid}/cwd/go`, '')
  assert.equal((await fake.ending(placement)).how, 'returned')
  assert.deepEqual(linesOf(placement).slice(1), ['went on'])
})
