// The agent that takes a program back is killed as well, before it was heard that the program goes on.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { NEEDS_ROOT, ofUsers } from '../isolation/requirements.ts'
import { abandoned } from './abandoned.ts'

/** Goes on when there is a file `go` in its workspace. */
const program = (wait: string) => `
  const { existsSync } = process.getBuiltinModule('node:fs')
  console.log(String(process.pid))
  while (!existsSync('go')) ${wait}
  console.log('went on')
  return 1`

const BUSY = program(';')
const QUIET = program('await new Promise((resolve) => setTimeout(resolve, 20))')

after(endAgentProcesses)

type Scene = Awaited<ReturnType<typeof abandoned>>

/** By the third agent, in the same attempt. */
async function goesOn({ fake, pid, placement, takeOver }: Scene): Promise<void> {
  await takeOver()
  writeFileSync(`/proc/${pid}/cwd/go`, '')
  assert.equal((await fake.ending(placement)).how, 'returned')
  assert.deepEqual(linesOf(placement).slice(1), ['went on'])
}

const read = (folder: string, name: string) => readFileSync(path.join(folder, 'lives', name), 'utf8')

test('one that computes and says nothing is kept for the third agent, and its lease with it', async (t) => {
  const scene = await abandoned(t, BUSY, {})
  const before = read(scene.folder, 'lease')
  const second = await scene.takeOverApart()
  await untilPolled('its lease is written on', () => read(scene.folder, 'lease') !== before)
  await second.kill('SIGKILL')
  await goesOn(scene)
})

test('one that was heard is kept as long as the coordinator is away', async (t) => {
  const scene = await abandoned(t, QUIET, {}, ({ fake }) => fake.mute.add('hello'))
  const second = await scene.takeOverApart()
  const links = path.join('/proc', String(scene.pid), 'fd')
  const opened = () => readdirSync(links).map((fd) => readlinkSync(path.join(links, fd)))
  await untilPolled('it waits to be told', () => opened().some((file) => path.basename(file) === 'messages.1'))
  await second.kill('SIGKILL')
  scene.fake.mute.delete('hello')
  await goesOn(scene)
})

test('one with a user of its own is kept from the first moment of the next reaper', { skip: NEEDS_ROOT }, async (t) => {
  const { first, last } = ofUsers().uids
  const scene = await abandoned(t, QUIET, { env: { WINDLASS_AGENT_RUN_UIDS: `${first}-${last}` } })
  const before = read(scene.folder, 'reaper')
  const second = scene.takeOverApart()
  await untilPolled('there is another reaper', () => read(scene.folder, 'reaper') !== before)
  await endAgentProcesses()
  await second
  await goesOn(scene)
})

/** Without a turn of its loop it hears of nothing. Some of what it says goes past JavaScript's streams. */
const DEAF = `
  const { step } = await import('windlass')
  const { existsSync, writeSync } = process.getBuiltinModule('node:fs')
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const computesUntil = (file) => { while (!existsSync(file)) Atomics.wait(pause, 0, 0, 10) }
  console.log(String(process.pid))
  computesUntil('raw')
  console.log('says where it stands')
  for (let n = 0; n < 50; n++) writeSync(1, 'raw ' + n + '\\n')
  computesUntil('go')
  await step('charge', () => 'paid')
  console.log('went on')
  return 1`

test('one that has not heard of the stop of its second agent goes on at the third, which tells all', async (t) => {
  const offered = { graceMs: 600_000, env: { WINDLASS_AGENT_STOP_MS: '600000' } }
  const scene = await abandoned(t, DEAF, offered, ({ fake }) => fake.mute.add('hello'))
  const { fake, pid, placement, takeOver, takeOverApart } = scene
  const second = await takeOverApart()
  for (const times of [1, 2]) {
    second.child.kill('SIGTERM')
    await until(`stop ${times}`, () => second.output().includes(`"times":${times}`))
  }
  fake.mute.delete('hello')
  fake.cut()
  writeFileSync(`/proc/${pid}/cwd/raw`, '')
  await until('what it writes is told', () => linesOf(placement).includes('raw 49'))
  await second.kill('SIGKILL')
  await takeOver()
  writeFileSync(`/proc/${pid}/cwd/go`, '')
  assert.equal((await fake.ending(placement)).how, 'returned')
  assert.equal(placement.entries.filter(([kind]) => kind === 'j').length, 1, 'the step is told of')
  const raw = Array.from({ length: 50 }, (_, n) => `raw ${n}`)
  assert.deepEqual(linesOf(placement).slice(1).toSorted(), ['says where it stands', ...raw, 'went on'].toSorted())
})
