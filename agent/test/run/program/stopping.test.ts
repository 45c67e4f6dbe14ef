import assert from 'node:assert/strict'
import test from 'node:test'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { ProgramStart, RunningProgram } from '../../../run/program/program.ts'
import { aStage, isAlive, texts, type Stage } from '../programs.ts'

/** Starts a program, and resolves when its first line is there. */
async function underWay(stage: Stage, name: string, more: Partial<ProgramStart>) {
  const said = Promise.withResolvers<void>()
  const lines: string[] = []
  const program: RunningProgram = stage.processes.run(await stage.start(name, more), (batch) => {
    lines.push(...texts(batch))
    said.resolve()
  })
  await said.promise
  return { program, lines }
}

// The test ends by its deadline where somebody waits for the grace.
test('a program that heeds the signal is cancelled without force', { timeout: DEADLINE_MS }, async (t) => {
  const stage = await aStage(t)
  const { program, lines } = await underWay(stage, 'never-ends.mjs', { inputText: '{"tidies":true}', graceMs: 600_000 })
  program.cancel({ why: 'cancelled', reason: 'enough' })
  program.cancel({ why: 'cancelled', reason: 'again' })
  assert.deepEqual(await program.done, { how: 'cancelled', forced: false })
  assert.deepEqual(lines, ['waiting', 'stopped by CancelledError'])
})

test('a program that ignores its cancel is killed when the grace is over', async (t) => {
  const stage = await aStage(t)
  const { program } = await underWay(stage, 'never-ends.mjs', {})
  program.cancel({ why: 'cancelled', reason: 'enough', graceMs: 200 })
  assert.deepEqual(await program.done, { how: 'cancelled', forced: true })
})

test('a cancel before the program has begun is not lost', async (t) => {
  const stage = await aStage(t)
  const program = stage.processes.run(await stage.start('never-ends.mjs', { inputText: '{"tidies":true}' }), () => {})
  program.cancel({ why: 'cancelled', reason: 'at once' })
  const ending = await program.done
  assert.equal(ending.how, 'cancelled')
})

test('a program that never ends runs out of time, in a busy loop too', async (t) => {
  const stage = await aStage(t)
  const play = (name: string) => stage.play(name, { timeoutMs: 600, graceMs: 200 })
  const [waiting, busy] = await Promise.all([play('never-ends.mjs'), play('busy-loop.mjs')])
  assert.deepEqual(waiting.ending, { how: 'timed-out', timeoutMs: 600 })
  assert.deepEqual(busy.ending, { how: 'timed-out', timeoutMs: 600 })
})

test('a fenced program is gone at once', async (t) => {
  const stage = await aStage(t)
  const { program, lines } = await underWay(stage, 'busy-loop.mjs', {})
  program.kill('fenced')
  assert.deepEqual(await program.done, { how: 'lost', reason: 'fenced' })
  assert.equal(await isAlive(Number(lines[0])), false)
})

test('closing ends what runs', async (t) => {
  const stage = await aStage(t, { spares: 1 })
  const { program, lines } = await underWay(stage, 'busy-loop.mjs', {})
  await stage.processes.close()
  assert.deepEqual(await program.done, { how: 'lost', reason: 'shutdown' })
  assert.equal(await isAlive(Number(lines[0])), false)
})
