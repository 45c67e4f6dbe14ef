import assert from 'node:assert/strict'
import { existsSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { fillDisk } from '@windlass/shared/test/_kit/fill-disk.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgentProcess, endAgentProcesses } from './_kit/an-agent.ts'
import { aProgram } from './_kit/bundle.ts'
import { FakeCoordinator, linesOf } from './_kit/fake-coordinator.ts'
import { aSmallDisk } from './_kit/small-disk.ts'
import { textIn } from './_kit/text-in.ts'

const MIB = 1024 * 1024
const ENV = { WINDLASS_AGENT_DISK_RESERVE_MB: '1', WINDLASS_AGENT_ISOLATION: 'process' }
const FILL = `
  const fs = process.getBuiltinModule('node:fs')
  const file = fs.openSync('large', 'w')
  const bytes = Buffer.alloc(65536)
  const fill = () => {
    for (let size = bytes.length; size > 0; size >>= 1) try { for (;;) fs.writeSync(file, bytes, 0, size) } catch {}
  }
  fill()
  fs.writeFileSync('done', '')`
const FILLS = `
  console.log(String(process.pid))
  ${FILL}
  await new Promise((resolve) => setTimeout(resolve, 600_000))`
const FILLS_ON = `${FILL}
  for (const until = Date.now() + 600_000; Date.now() < until;) fill()`
/** By a process of its own, when it is told to. */
const HAS_FILLED = `
  console.log(String(process.pid))
  const { existsSync } = process.getBuiltinModule('node:fs')
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  const { spawn } = process.getBuiltinModule('node:child_process')
  spawn(process.execPath, ['-e', ${JSON.stringify(FILLS_ON)}], { stdio: 'ignore' })
  await new Promise((resolve) => setTimeout(resolve, 600_000))`

after(endAgentProcesses)

/** An agent on a small disk of its own that executes a program. */
async function anAgentOnASmallDisk(t: TestContext, body: string) {
  const { folder, remove } = await aFolder()
  const disk = await aSmallDisk(folder, 32 * MIB)
  const fake = await FakeCoordinator.start()
  t.after(async () => {
    await endAgentProcesses()
    await fake.close()
    disk?.remove()
    await remove()
  })
  if (!disk) {
    t.skip('no file system can be mounted here')
    return undefined
  }
  const home = path.join(disk.folder, 'home')
  await mkdir(home)
  await cp(path.join(folder, 'runtime'), path.join(home, 'runtime'), { recursive: true })
  const start = () => anAgentProcess(fake.url, home, ENV)
  const agent = await start()
  const placement = fake.offer(await aProgram(body), { timeoutMs: 600_000 })
  const pid = Number(await until('its first line', () => linesOf(placement)[0]))
  const workspace = readlinkSync(`/proc/${pid}/cwd`)
  const filled = () => untilPolled('it has filled the disk', () => existsSync(path.join(workspace, 'done')))
  /** By the next agent, which has started long since where it takes its time. */
  const removed = async () => {
    const workspaces = path.dirname(workspace)
    const isThere = () => existsSync(workspace) || readdirSync(workspaces).some((name) => name.startsWith('gone-'))
    await untilPolled('it has removed what was left', () => !isThere())
    const held = () => statSync(path.join(home, 'reserve'), { throwIfNoEntry: false })?.size
    await untilPolled('it has room in reserve again', () => held() === 4 * MIB)
  }
  return { home, agent, start, pid, run: placement.offer.run, workspace, filled, removed }
}

test('an agent whose disk a run has filled starts again, and removes what the run has left', async (t) => {
  const on = await anAgentOnASmallDisk(t, FILLS)
  if (!on) return
  await on.filled()
  await on.agent.kill('SIGKILL')
  process.kill(on.pid, 'SIGKILL')
  const next = await on.start()
  assert.equal(next.child.exitCode, null, next.output())
  await on.removed()
})

test('it does so without room in reserve, too', async (t) => {
  const on = await anAgentOnASmallDisk(t, FILLS)
  if (!on) return
  await on.filled()
  await on.agent.kill('SIGKILL')
  process.kill(on.pid, 'SIGKILL')
  rmSync(path.join(on.home, 'reserve'))
  fillDisk(path.join(on.workspace, 'larger'))
  const next = await on.start()
  assert.equal(next.child.exitCode, null, next.output())
  await on.removed()
})

test('what a program has started and goes on filling the disk is ended before a start takes the room', async (t) => {
  const on = await anAgentOnASmallDisk(t, HAS_FILLED)
  if (!on) return
  const lives = path.join(on.home, 'lives')
  await untilPolled('it may be taken back', () => textIn(lives).includes(on.run))
  writeFileSync(path.join(on.workspace, 'go'), '')
  await on.filled()
  await on.agent.kill('SIGKILL')
  const next = await on.start()
  assert.equal(next.child.exitCode, null, next.output())
})
