import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import test, { type TestContext } from 'node:test'
import { startReaper, type Reaper } from '../../../run/hosts/reaper.ts'
import { sinceBootMs } from '../../../os/process-id.ts'

// Only processes with groups of their own, and markers that nobody else bears.
function aGroup(t: TestContext): ChildProcess {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  return child
}

function aReaper(): Reaper {
  return startReaper({
    cwd: '/',
    path: process.env.PATH ?? '/usr/bin:/bin',
    markerPrefix: `nobody-${process.pid}-${Math.random()}`,
    cgroups: undefined,
    uids: null,
    onRestart: () => undefined,
  })
}

const ended = async (child: ChildProcess) => child.signalCode ?? (await once(child, 'exit'))[1]

test('the groups on its list are killed when nobody speaks to it any more', async (t) => {
  const child = aGroup(t)
  const reaper = aReaper()
  reaper.add(child.pid!)
  await reaper.close()
  assert.equal(await ended(child), 'SIGKILL')
})

test('what is no number is passed over', async (t) => {
  const child = aGroup(t)
  const reaper = aReaper()
  reaper.add(Number.NaN)
  reaper.add(child.pid!)
  await reaper.close()
  assert.equal(await ended(child), 'SIGKILL')
})

test('one that is kept lives on while the lease holds, and a stop of the agent keeps nothing', async (t) => {
  const child = aGroup(t)
  const reaper = aReaper()
  reaper.add(child.pid!)
  reaper.keep(child.pid!, true)
  reaper.leaseUntil(sinceBootMs() + 60_000)
  await reaper.close()
  assert.equal(await ended(child), 'SIGKILL')
})

test('the groups on its list are killed at the fence, though its pipe is open', async (t) => {
  const [fenced, later] = [aGroup(t), aGroup(t)]
  const reaper = aReaper()
  reaper.add(fenced.pid!)
  reaper.fenceAt(sinceBootMs() + 60_000)
  // It comes earlier than it was waited for.
  reaper.fenceAt(sinceBootMs() + 200)
  assert.equal(await ended(fenced), 'SIGKILL')
  reaper.add(later.pid!)
  reaper.fenceAt(sinceBootMs() + 60_000)
  reaper.fenceAt(undefined)
  assert.equal(later.signalCode, null)
  await reaper.close()
  assert.equal(await ended(later), 'SIGKILL')
})
