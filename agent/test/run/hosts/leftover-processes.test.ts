import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import test from 'node:test'
import { untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { DEADLINE_MS, until } from '@windlass/shared/test/_kit/until.ts'
import { aStage, bundleInto, isAlive, texts } from '../programs.ts'

test('children that a program leaves behind are dead before its run is done', async (t) => {
  const stage = await aStage(t)
  const cases = [{ inSession: false }, { inSession: true }, { inSession: true, bare: true }]
  for (const input of cases) {
    const { ending, events } = await stage.play('starts-escapee.mjs', { inputText: JSON.stringify(input) })
    assert.ok(ending.how === 'returned', JSON.stringify(ending))
    assert.equal(await isAlive(Number(ending.outputText)), false, JSON.stringify(input))
    // The runtime's own descriptors are not handed on: 3 is the folder that `ls` reads. High ones came with whoever started us.
    // Its own line may come before that of the child, which takes another way.
    const listed = texts(events).find((text) => /^[0-9 ]+$/.test(text.trim())) ?? ''
    const low = listed
      .trim()
      .split(' ')
      .map(Number)
      .filter((fd) => fd < 16)
    assert.deepEqual(low, [0, 1, 2, 3])
  }
  assert.equal(stage.processes.stats().survivors, 0)
})

test('a busy loop and its children do not outlive an agent that is killed', async (t) => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-reaper-'))
  const bundles = [
    await bundleInto(path.join(home, 'busy'), 'busy-loop.mjs'),
    await bundleInto(path.join(home, 'stray'), 'starts-escapee.mjs'),
  ]
  const agent = spawn(process.execPath, [path.join(import.meta.dirname, 'small-agent.ts'), home, ...bundles], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  t.after(async () => {
    agent.kill('SIGKILL')
    await fs.rm(home, { recursive: true, force: true })
  })
  const pids: number[] = []
  const lines = createInterface({ input: agent.stdout, signal: AbortSignal.timeout(DEADLINE_MS) })
  for await (const line of lines) {
    pids.push(Number(line))
    if (pids.length === 3) break
  }
  assert.equal(pids.length, 3)
  assert.deepEqual(await Promise.all(pids.map(isAlive)), [true, true, true])

  // Its whole group, as an init system or an impatient person would.
  process.kill(-(agent.pid ?? 0), 'SIGKILL')
  await once(agent, 'exit')
  for (const pid of pids) await untilGone('a program of a dead agent', pid)
})

test('a reaper that dies is replaced and knows what runs', async (t) => {
  const stage = await aStage(t)
  const before = stage.processes.stats().reaperPid
  assert.ok(before)
  process.kill(before, 'SIGKILL')
  await until('there is another reaper', () => ![before, undefined].includes(stage.processes.stats().reaperPid))
  assert.equal((await stage.play('tells-in-order.mjs')).ending.how, 'returned')
})
