import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import type { ProgramEvent } from '../../../run/program/output.ts'
import type { ProgramStart } from '../../../run/program/program.ts'
import { aTime } from '../../_kit/a-time.ts'
import { handMadeFiles } from '../../_kit/hand-made.ts'
import { standStillUntil } from '../../_kit/stand-still.ts'
import { aStage, aStart, texts } from '../programs.ts'

const HOUR_MS = 3_600_000

/** A program that goes on when it is told to, and time that passes when the test says so. */
async function aProgram(t: TestContext, body: string, more: Partial<ProgramStart> = {}) {
  const time = aTime()
  const stage = await aStage(t, { time })
  const folder = path.join(stage.home, 'bundles/by-hand')
  await mkdir(folder, { recursive: true })
  for (const [name, text] of Object.entries(handMadeFiles(body))) await writeFile(path.join(folder, name), text)
  const events: ProgramEvent[] = []
  const save = () => events.push({ at: 0, channel: 'log', type: 'saved', data: { text: 'saved' } })
  const start = { ...aStart(folder), timeoutMs: 1000, graceMs: 50, save, ...more }
  const program = stage.processes.run(start, (batch) => {
    events.push(...batch)
    announce()
  })
  const channel = (name: ProgramEvent['channel']) =>
    until(`its ${name}`, () => events.find((event) => event.channel === name))
  const printed = () => texts(events.filter((event) => event.channel === 'log'))
  const said = (text: string) => until(`'${text}'`, () => printed().includes(text))
  return { time, program, channel, said, folder, events }
}

const WAITS = `say('computes'); await kept(1); await waitFor(1); say('goes on'); await kept(2); done()`

async function parkedAfter600(t: TestContext) {
  const waiting = await aProgram(t, WAITS)
  const { time, program, channel, said } = waiting
  await said('computes')
  time.pass(600)
  program.confirm(1)
  assert.deepEqual((await channel('park')).data, { waitsFor: 'sleep', computeMs: 600 })
  time.pass(HOUR_MS)
  assert.equal(program.computeMs(), 0)
  program.wake([{ n: 1, state: 'done', result: 'null' }])
  await said('goes on')
  return waiting
}

test('time in which a program only waits neither counts nor runs out', async (t) => {
  const { time, program } = await parkedAfter600(t)
  time.pass(399)
  assert.equal(program.computeMs(), 399)
  program.confirm(2)
  assert.equal((await program.done).how, 'returned')
})

test('the time that is left goes on when the program goes on', async (t) => {
  const { time, program } = await parkedAfter600(t)
  time.pass(400)
  assert.deepEqual(await program.done, { how: 'timed-out', timeoutMs: 1000 })
})

const REPLAYS = `close(1); await kept(1); frame('live'); say('live'); await kept(2); done()`

for (const [ms, how] of [
  [999, 'returned'],
  [1000, 'timed-out'],
] as const) {
  test(`what a replay takes is not taken off the time that is left: ${ms} of 1000 ms, ${how}`, async (t) => {
    const { time, program, channel, said } = await aProgram(t, REPLAYS, { replay: true })
    await channel('journal')
    time.pass(HOUR_MS)
    program.confirm(1)
    await said('live')
    time.pass(ms)
    assert.equal(program.computeMs(), ms)
    program.confirm(2)
    assert.equal((await program.done).how, how)
  })
}

const LATE_ENDINGS = {
  returned: `frame('returned', 'null')`,
  threw: `frame('threw', JSON.stringify({ name: 'Error', message: 'mine' }))`,
} as const

for (const [how, says] of Object.entries(LATE_ENDINGS)) {
  test(`'${how}', said while its agent stood still, counts before its time that was over then`, async (t) => {
    const body = `const { writeFileSync } = await import('node:fs'); say('computes'); await kept(1); ${says}
      writeFileSync(new URL('said', import.meta.url), '')`
    const { time, program, said, folder } = await aProgram(t, body)
    await said('computes')
    time.pass(900)
    program.confirm(1)
    // Nothing of this agent has a turn meanwhile; what lies in the pipe is there when it goes on.
    standStillUntil(() => existsSync(path.join(folder, 'said')))
    time.stall(40_000)
    assert.equal((await program.done).how, how)
  })
}

test('that its time is over is written down before the program hears of it', async (t) => {
  const body = `say('computes'); await message('cancel'); say('undoes'); done()`
  const { time, program, said, events } = await aProgram(t, body, { graceMs: 15_000 })
  await said('computes')
  time.pass(1000)
  assert.deepEqual(await program.done, { how: 'timed-out', timeoutMs: 1000 })
  const data = events.map(({ channel, data: one }) =>
    channel === 'resume' ? one : texts([{ data: one } as ProgramEvent])[0],
  )
  assert.deepEqual(data, ['computes', 'timed-out', 'saved', 'undoes'])
})
