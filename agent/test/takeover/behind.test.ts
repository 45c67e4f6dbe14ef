// What other programs have left is removed when the agent has begun again.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { within } from '@windlass/shared/time.ts'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { holdUnlinks } from '../_kit/hold-unlinks.ts'
import { abandoned } from './abandoned.ts'

const DEADLINE_MS = 60_000
/** Goes on when there is a file `go` in its workspace. */
const PROGRAM = `
  const { existsSync } = process.getBuiltinModule('node:fs')
  console.log(String(process.pid))
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  console.log('went on')
  return 1`

after(endAgentProcesses)

/** A workspace of a program that is not taken back. */
function leave(folder: string): void {
  const workspace = path.join(folder, 'workspaces', '900')
  mkdirSync(workspace)
  for (let n = 0; n < 200; n++) writeFileSync(path.join(workspace, `left-${n}`), '')
}

test('a program is taken back before the files that others have left are removed', async (t) => {
  const scene = await abandoned(t, PROGRAM, {}, ({ folder }) => leave(folder))
  const unlinks = holdUnlinks(t, '/left-')
  await within(DEADLINE_MS, scene.takeOver(), 'the start waited for the removal')
  await within(DEADLINE_MS, scene.connected(), 'the agent did not connect')
  writeFileSync(`/proc/${scene.pid}/cwd/go`, '')
  assert.equal((await scene.fake.ending(scene.placement)).how, 'returned')
  assert.deepEqual(linesOf(scene.placement).slice(1), ['went on'])
  await until('the removal', () => unlinks.held() > 0)
  unlinks.release()
  const workspaces = path.join(scene.folder, 'workspaces')
  const names = () => readdirSync(workspaces)
  await untilPolled('it is gone', () => !names().some((name) => name === '900' || name.startsWith('gone-')))
})

test('a stop does not wait for them', async (t) => {
  const scene = await abandoned(t, PROGRAM, {}, ({ folder }) => leave(folder))
  const unlinks = holdUnlinks(t, '/left-')
  const agent = await within(DEADLINE_MS, scene.takeOver(), 'the start waited for the removal')
  await until('the removal', () => unlinks.held() > 0)
  agent.stop()
  await within(DEADLINE_MS, agent.done, 'the stop waited for the removal')
  const files = readdirSync(path.join(scene.folder, 'workspaces'), { recursive: true })
  assert.equal(files.filter((name) => String(name).includes('left-')).length, 200)
})
