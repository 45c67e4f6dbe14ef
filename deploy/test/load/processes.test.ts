import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { meter } from '../../load/cpu.ts'
import { familyOf, livingMiB, ownCpuMs, reapedCpuMs, residentMiB, treeCpuMs } from '../../load/processes.ts'

const HELD_MS = 60_000

/** Answers a pid of a process that was there, and is not any more. */
async function endedPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' })
  await once(child, 'exit')
  return child.pid!
}

test('a process that has ended has no memory, no CPU and no family', async () => {
  const pid = await endedPid()
  assert.equal(residentMiB(pid), undefined)
  assert.equal(ownCpuMs(pid), 0)
  assert.equal(reapedCpuMs(pid), 0)
  assert.equal(treeCpuMs(pid), 0)
  assert.deepEqual(familyOf(pid), [])
  assert.throws(() => livingMiB(pid, 'agent'), /^Error: the agent has ended$/)
})

test('a process that has ended and was not reaped has no memory and keeps its CPU', async () => {
  // The shell becomes a program that reaps nobody, so its child stays a zombie.
  const script = '"$0" -e "for (const end = Date.now() + 50; Date.now() < end;);" & echo $!; exec sleep 60'
  const parent = spawn('/bin/sh', ['-c', script, process.execPath], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    const signal = AbortSignal.timeout(HELD_MS)
    const [line] = (await once(parent.stdout, 'data', { signal })) as [Buffer]
    const zombie = Number(String(line))
    while (residentMiB(zombie) !== undefined) {
      signal.throwIfAborted()
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.ok(ownCpuMs(zombie) >= 10)
    assert.ok(familyOf(parent.pid!).includes(zombie))
  } finally {
    const ended = once(parent, 'exit')
    parent.kill('SIGKILL')
    // Others here measure the tree: what nobody has reaped leaves it.
    await ended
  }
})

test('CPU of a tree counts the processes that have ended in it', async () => {
  const before = treeCpuMs(process.pid)
  // The kernel rounds what is reaped down to ticks of 10 ms, once for each of two sums.
  const busy = 'while (process.cpuUsage().user < 130_000);'
  await once(spawn(process.execPath, ['-e', busy], { stdio: 'ignore' }), 'exit')
  const spentMs = treeCpuMs(process.pid) - before
  assert.ok(spentMs >= 100, `${spentMs} ms`)
})

test('a meter tells what each part has spent since, for each run', () => {
  let ms = 1000
  const used = meter({ coordinator: () => ms, idle: () => 5 })
  ms += 300
  assert.deepEqual(used(100), { coordinator: 3, idle: 0 })
})
