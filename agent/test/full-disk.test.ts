import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgentProcess, endAgentProcesses } from './_kit/an-agent.ts'
import { aProgram } from './_kit/bundle.ts'
import { FakeCoordinator, linesOf } from './_kit/fake-coordinator.ts'
import { aSmallDisk } from './_kit/small-disk.ts'

const MIB = 1024 * 1024
const ENV = { WINDLASS_AGENT_DISK_RESERVE_MB: '1', WINDLASS_AGENT_ISOLATION: 'process' }
const FILLS = `
  const fs = process.getBuiltinModule('node:fs')
  const file = fs.openSync('large', 'w')
  const bytes = Buffer.alloc(65536)
  console.log(String(process.pid))
  for (let size = bytes.length; size > 0; size >>= 1) try { for (;;) fs.writeSync(file, bytes, 0, size) } catch {}
  fs.writeFileSync('done', '')
  await new Promise((resolve) => setTimeout(resolve, 600_000))`

after(endAgentProcesses)

test('an agent whose disk a run has filled starts again, and removes what the run has left', async (t) => {
  const { folder, remove } = await aFolder()
  const disk = await aSmallDisk(folder, 32 * MIB)
  const fake = await FakeCoordinator.start()
  t.after(async () => {
    await endAgentProcesses()
    await fake.close()
    disk?.remove()
    await remove()
  })
  if (!disk) return t.skip('no file system can be mounted here')
  const home = path.join(disk.folder, 'home')
  await mkdir(home)
  await cp(path.join(folder, 'runtime'), path.join(home, 'runtime'), { recursive: true })
  const first = await anAgentProcess(fake.url, home, ENV)
  const placement = fake.offer(await aProgram(FILLS), { timeoutMs: 600_000 })
  const pid = Number(await until('its first line', () => linesOf(placement)[0]))
  const workspaces = path.join(home, 'workspaces')
  const isFull = () => readdirSync(workspaces).some((name) => existsSync(path.join(workspaces, name, 'done')))
  await untilPolled('it has filled the disk', isFull)
  await first.kill('SIGKILL')
  process.kill(pid, 'SIGKILL')
  const next = await anAgentProcess(fake.url, home, ENV)
  assert.equal(next.child.exitCode, null, next.output())
  assert.ok(!isFull())
})
