import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aProgram } from '../_kit/bundle.ts'
import { endingOf, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

/** Says its process number and stays until it is told to go. */
const STAYS = `console.log(String(process.pid)); await new Promise((resolve) => {
  const timer = setInterval(() => {}, 1000)
  given.signal.addEventListener('abort', () => { clearInterval(timer); resolve() })
})`
const DEAF = `console.log(String(process.pid)); await new Promise(() => setInterval(() => {}, 1000))`

async function pidOf(placement: FakePlacement): Promise<number> {
  return Number(await until('the first line', () => linesOf(placement)[0]))
}

withAgent('an offer that is refused never runs', async ({ fake, folder }) => {
  const mark = path.join(folder, 'ran')
  const program = await aProgram(
    `const fs = await import('node:fs'); fs.writeFileSync(${JSON.stringify(mark)}, ''); return 1`,
  )
  const refused = fake.offer(program)
  fake.refused.add(refused.offer.run)
  await until('the accept', () => fake.heard('accept').length > 0)
  // Whatever the agent does with the first, it has done by the end of the second.
  const other = fake.offer(await aProgram(`return 2`))
  await fake.ending(other)
  await until('it is forgotten', () => fake.heard('heartbeat').at(-1)?.holds.length === 0)
  assert.equal(existsSync(mark), false)
  assert.deepEqual(refused.entries, [])
})

withAgent('nothing runs while its accept is unanswered', async ({ fake }) => {
  fake.mute.add('accept')
  const placement = fake.offer(await aProgram(`return 1`))
  await until('the accept', () => fake.heard('accept').length > 0)
  const beats = fake.heard('heartbeat').length
  await until('two more heartbeats', () => fake.heard('heartbeat').length >= beats + 2)
  assert.deepEqual(placement.entries, [])
  fake.mute.delete('accept')
  fake.cut()
  assert.deepEqual(
    await fake.ending(placement),
    { how: 'returned', outputText: '1' },
    'it is asked again on the next connection',
  )
})

withAgent('a cancelled program hears its signal, and its end says that it went by itself', async ({ fake }) => {
  const placement = fake.offer(await aProgram(STAYS))
  const pid = await pidOf(placement)
  fake.send({
    t: 'cancel',
    runs: [{ run: placement.offer.run, epoch: 1, why: 'cancelled', reason: 'typo', graceMs: 3000 }],
  })
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
  assert.ok(isGone(pid))
})

withAgent('a program that listens for signals of its own hears none from its agent', async ({ fake }) => {
  // What watches for changes of files and writers of heap snapshots use it.
  const program = await aProgram(`process.on('SIGUSR2', () => console.log('SIGUSR2'))\n${STAYS}`)
  const placement = fake.offer(program)
  await pidOf(placement)
  fake.send({
    t: 'cancel',
    runs: [{ run: placement.offer.run, epoch: 1, why: 'cancelled', reason: 'typo', graceMs: 3000 }],
  })
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
  assert.equal(linesOf(placement).length, 1)
})

withAgent('a program that does not listen is killed after the grace', async ({ fake }) => {
  const placement = fake.offer(await aProgram(DEAF))
  const pid = await pidOf(placement)
  fake.send({
    t: 'cancel',
    runs: [{ run: placement.offer.run, epoch: 1, why: 'cancelled', reason: 'typo', graceMs: 100 }],
  })
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: true })
  assert.ok(isGone(pid))
})

withAgent('a stale placement is killed without a report and forgotten', async ({ fake }) => {
  const placement = fake.offer(await aProgram(DEAF))
  const pid = await pidOf(placement)
  const count = placement.entries.length
  placement.state = 'stale'
  await untilGone('the program', pid)
  await until('it is forgotten', () => fake.heard('heartbeat').at(-1)?.holds.length === 0)
  assert.equal(placement.entries.length, count)
  assert.equal(endingOf(placement), undefined)
})

withAgent(
  'without answered heartbeats the agent kills what it runs, and reports it as lost when it is back',
  async ({ fake, agent }) => {
    const placement = fake.offer(await aProgram(DEAF))
    const pid = await pidOf(placement)
    fake.mute.add('heartbeat')
    const before = fake.heard('heartbeat').length
    const fenced = await until('the fence', () => agent.lines.find(({ name }) => name === 'runs.fenced'))
    // They come every 80 to 120 ms, by the clock of the fence: with more of them in its second it would come too late.
    const unanswered = fake.heard('heartbeat').length - before
    assert.ok(unanswered >= 1 && unanswered <= 15, `${unanswered} heartbeats were not answered`)
    assert.equal(fenced.fenceMs, 1000)
    await untilGone('the program', pid)
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'lost')
    assert.match(ending.reason, /lease/)
    fake.mute.delete('heartbeat')
    assert.deepEqual(await fake.ending(fake.offer(await aProgram(`return 1`))), { how: 'returned', outputText: '1' })
  },
  { settings: { heartbeatMs: 100, fenceMs: 1000 } },
)

withAgent(
  'a program that is replaced by another agent of the same identity makes this one stop',
  async ({ fake, agent }) => {
    const placement = fake.offer(await aProgram(DEAF))
    const pid = await pidOf(placement)
    fake.send({ t: 'refused', code: 'REPLACED', message: 'another agent uses this identity' })
    fake.cut()
    assert.equal(await agent.done, 80)
    assert.ok(isGone(pid))
  },
)
