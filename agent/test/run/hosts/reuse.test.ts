import assert from 'node:assert/strict'
import test from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aStage, isAlive, texts, type Stage } from '../programs.ts'

async function count(stage: Stage, input: object = {}, reuseKey = 'a') {
  const { ending } = await stage.play('counts-runs.mjs', {
    process: 'reuse',
    reuseKey,
    inputText: JSON.stringify(input),
  })
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  return JSON.parse(ending.outputText) as { runs: number; clean: boolean; pid: number }
}

test('a process serves further runs of its own program, each in fresh surroundings', async (t) => {
  const stage = await aStage(t)
  const first = await count(stage)
  const second = await count(stage)
  assert.deepEqual([first.runs, second.runs, second.pid], [1, 2, first.pid])
  assert.equal(second.clean, true)
  const other = await count(stage, {}, 'b')
  assert.equal(other.runs, 1)
  assert.notEqual(other.pid, first.pid)
})

test('an error of the program does not retire its process', async (t) => {
  const stage = await aStage(t)
  const { pid } = await count(stage)
  const { ending } = await stage.play('counts-runs.mjs', {
    process: 'reuse',
    reuseKey: 'a',
    inputText: '{"fail":true}',
  })
  assert.equal(ending.how, 'threw')
  assert.deepEqual(await count(stage), { runs: 3, clean: true, pid })
})

test('leftovers retire a process', async (t) => {
  const stage = await aStage(t)
  for (const leave of ['timer', 'unrefed timer', 'listener']) {
    const { pid } = await count(stage, { leave })
    assert.equal(stage.processes.stats().idle, 0)
    assert.equal(await isAlive(pid), false, leave)
    assert.equal((await count(stage)).runs, 1)
    await count(stage, { leave })
  }
})

test('a run says nothing for a former one, and the log of the agent names both', async (t) => {
  const intruded: unknown[] = []
  const log = (name: string, facts?: object) => void (name === 'process.intruded' && intruded.push(facts))
  const stage = await aStage(t, { log })
  const play = (runId: string) =>
    stage.play('counts-runs.mjs', { runId, process: 'reuse', inputText: '{"leave":"a call"}' })
  const first = await play('run_one')
  assert.deepEqual(texts(first.events), ['of the first'])
  const second = await play('run_two')
  assert.equal(second.ending.how, 'returned')
  assert.deepEqual(second.events, [])
  assert.deepEqual(intruded, [{ runId: 'run_two', by: ['log of run_one'] }])
  assert.equal(stage.processes.stats().idle, 0)
})

test('a process is retired after its number of runs, when it is idle for long, and when there are too many', async (t) => {
  const stage = await aStage(t, { runsPerProcess: 2, idleMs: 300, idleProcesses: 1 })
  const runs: number[] = []
  for (let i = 0; i < 3; i++) runs.push((await count(stage)).runs)
  assert.deepEqual(runs, [1, 2, 1])
  await count(stage, {}, 'b')
  assert.equal(stage.processes.stats().idle, 1)
  await until('the idle process is gone', () => stage.processes.stats().idle === 0)
})

test('a cancelled run takes its process with it', async (t) => {
  const stage = await aStage(t)
  const said = Promise.withResolvers<void>()
  const start = await stage.start('never-ends.mjs', { process: 'reuse', inputText: '{"tidies":true}' })
  const program = stage.processes.run(start, () => said.resolve())
  await said.promise
  program.cancel({ why: 'cancelled', reason: 'enough' })
  assert.deepEqual(await program.done, { how: 'cancelled', forced: false })
  assert.equal(stage.processes.stats().idle, 0)
})

test('an idle process that dies is not given to anybody', async (t) => {
  const stage = await aStage(t)
  const { pid } = await count(stage)
  process.kill(pid, 'SIGKILL')
  assert.equal((await count(stage)).runs, 1)
})

test('a run that lasts longer than the first look at messages can be followed by another', async (t) => {
  const stage = await aStage(t)
  const slow = { process: 'reuse', reuseKey: 'slow', inputText: '{"ms":1200}' } as const
  const first = await stage.play('takes-time.mjs', slow)
  const second = await stage.play('takes-time.mjs', { ...slow, inputText: '{"ms":1}' })
  assert.deepEqual(
    [first.ending, second.ending].map((ending) => ending.how),
    ['returned', 'returned'],
  )
  assert.deepEqual(first.ending, second.ending)
})
