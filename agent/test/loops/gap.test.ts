// A part of what a run had said is gone: on the disk of its agent, or in the database.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { textIn } from '../_kit/text-in.ts'
import { withAgent } from '../_kit/with-agent.ts'
import { abandoned } from '../takeover/abandoned.ts'

const TICKS = `
  console.log(String(process.pid))
  for (let n = 1; ; n++) {
    console.log('line ' + n + ';')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }`
const LOST = { how: 'lost', reason: LOST_REASONS.incomplete }

after(endAgentProcesses)

test('a coordinator that has lost what it had acknowledged hears at once that the run is lost', async (t) => {
  const { fake, folder, placement, pid, takeOver } = await abandoned(t, TICKS, {}, ({ fake: first }) => {
    first.mute.add('entries')
  })
  const [file] = filesOf(folder)
  const had = linesOf(placement).length
  fake.mute.delete('entries')
  await takeOver()
  await until('more of it', () => linesOf(placement).length > had + 20)
  await untilPolled('the first file is gone', () => !filesOf(folder).includes(file!))
  placement.entries.splice(2)
  fake.cut()
  assert.deepEqual(await fake.ending(placement), LOST)
  assert.equal(placement.entries.length, 3)
  assert.ok(isGone(pid))
})

test('a damaged part in the middle of the spool is told as a loss, and the program does not go on', async (t) => {
  const { fake, folder, placement, pid, takeOver, takeOverApart } = await abandoned(t, TICKS, {}, async (first) => {
    first.fake.mute.add('ack')
    await until('more of it in the first file', () => linesOf(first.placement).length > 20)
  })
  const inFirst = linesOf(placement).length
  const agent = await takeOverApart()
  await until('more of it in another file', () => linesOf(placement).length > inFirst + 20)
  await agent.kill('SIGKILL')
  // None of it was acknowledged.
  placement.entries.splice(3)
  damage(filesOf(folder)[0]!, `line ${inFirst - 5};`)
  await takeOver()
  assert.deepEqual(await fake.ending(placement), LOST)
  const lines = linesOf(placement).slice(1)
  assert.deepEqual(
    lines,
    lines.map((_line, at) => `line ${at + 1};`),
  )
  assert.ok(isGone(pid))
})

withAgent('the end of a run that is damaged before it is told is told as a loss', async ({ fake, folder }) => {
  fake.mute.add('entries')
  const placement = fake.offer(await aProgram('return 7'))
  await untilPolled('it stands in the spool', () => textIn(path.join(folder, 'spool')).includes('"returned"'))
  damage(filesOf(folder)[0]!, '"returned"')
  fake.mute.delete('entries')
  fake.cut()
  assert.deepEqual(await fake.ending(placement), LOST)
})

withAgent('an agent takes no work while it cannot read what it has to tell', async ({ fake, agent, folder }) => {
  fake.mute.add('entries')
  const bundle = await aProgram('return 7')
  const first = fake.offer(bundle)
  await untilPolled('it stands in the spool', () => textIn(path.join(folder, 'spool')).includes('"returned"'))
  const [file] = filesOf(folder)
  renameSync(file!, path.join(folder, 'away'))
  symlinkSync(file!, file!)
  fake.mute.delete('entries')
  fake.cut()
  await until('the check fails', () =>
    agent.lines.some(({ name, check }) => name === 'check.fails' && check === 'spool-reads'),
  )
  await until('the poll is given up', () => fake.polling() === 0)
  const second = fake.offer(bundle)
  rmSync(file!)
  renameSync(path.join(folder, 'away'), file!)
  for (const placement of [first, second])
    assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '7' })
})

function filesOf(folder: string): string[] {
  const spool = path.join(folder, 'spool')
  const names = readdirSync(spool).toSorted()
  return names.map((name) => path.join(spool, name))
}

function damage(file: string, where: string): void {
  const bytes = readFileSync(file)
  const at = bytes.indexOf(where)
  assert.ok(at > 0, `${where} stands in ${file}`)
  bytes[at] = 0x23
  writeFileSync(file, bytes)
}
