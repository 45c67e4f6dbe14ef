// What programs write past JavaScript's streams, to descriptors 1 and 2, is not lost with an agent.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import type { ProgramRecord } from '../../takeover/records.ts'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { textIn } from '../_kit/text-in.ts'
import { abandoned } from './abandoned.ts'

const isTakenBack = process.platform === 'linux' ? {} : { skip: 'without /proc nothing is taken back' }
const RETURNED = { how: 'returned', outputText: 'null' }

after(endAgentProcesses)

/**
 * A program that begins with this when its agent is gone. Before, it never turns its loop: it does not hear of that,
 * and does not stand still.
 */
async function aloneWith(t: TestContext, body: string, more: { secrets?: Record<string, string> } = {}) {
  const shared = mkdtempSync(path.join(os.tmpdir(), 'windlass-raw-'))
  t.after(() => rmSync(shared, { recursive: true, force: true }))
  const text = `
    const { existsSync, writeFileSync, writeSync } = await import('node:fs')
    const raw = (fd, line) => writeSync(fd, line + '\\n')
    const pause = new Int32Array(new SharedArrayBuffer(4))
    console.log(String(process.pid))
    while (!existsSync(process.env.SHARED + '/go')) Atomics.wait(pause, 0, 0, 10)
    ${body}
    return null`
  const left = await abandoned(t, text, { ...more, variables: { SHARED: shared } })
  writeFileSync(path.join(shared, 'go'), '')
  const hasWritten = () => untilPolled('it has written', () => existsSync(path.join(shared, 'written')))
  return { ...left, hasWritten }
}

function pipesIn(folder: string): string[] {
  const lives = path.join(folder, 'lives')
  const records = readdirSync(lives).filter((name) => name.endsWith('.json'))
  return records.flatMap((name) => {
    const { rawPipes } = JSON.parse(readFileSync(path.join(lives, name), 'utf8')) as ProgramRecord
    return [`${rawPipes}.1`, `${rawPipes}.2`].map((each) => path.join(folder, 'pipes', each))
  })
}

test('what it and its children write when it was taken back is in its log', isTakenBack, async (t) => {
  const { fake, folder, placement, takeOver } = await aloneWith(
    t,
    `console.log('taken back')
    for (const n of [1, 2, 3]) { raw(1, 'out ' + n); raw(2, 'err ' + n) }
    const { execFileSync } = process.getBuiltinModule('node:child_process')
    execFileSync('sh', ['-c', 'echo out of a child; echo err of a child >&2'], { stdio: 'inherit' })`,
  )
  const pipes = pipesIn(folder)
  assert.deepEqual(
    pipes.map((pipe) => existsSync(pipe)),
    [true, true],
  )
  await takeOver()
  assert.deepEqual(await fake.ending(placement), RETURNED)
  const rest = ['err 1', 'err 2', 'err 3', 'err of a child', 'out 1', 'out 2', 'out 3', 'out of a child', 'taken back']
  assert.deepEqual(linesOf(placement).slice(1).toSorted(), rest)
  await untilPolled('its pipes are gone', () => pipes.every((pipe) => !existsSync(pipe)))
})

test('what it wrote while no agent was there comes as well, without its secrets', isTakenBack, async (t) => {
  const { fake, placement, takeOver, hasWritten } = await aloneWith(
    t,
    `raw(1, 'alone with ' + process.env.KEY)
    raw(2, 'and loud')
    writeFileSync(process.env.SHARED + '/written', '')
    // Much more than a pipe holds: it stands still until somebody reads.
    for (let n = 0; n < 300; n++) raw(1, n + ' ' + 'x'.repeat(1000))
    console.log('heard')`,
    { secrets: { KEY: 'correct horse battery staple' } },
  )
  await hasWritten()
  await takeOver()
  assert.deepEqual(await fake.ending(placement), RETURNED)
  const lines = linesOf(placement)
  assert.ok(lines.includes('alone with ***') && lines.includes('and loud'), lines.slice(0, 5).join('\n'))
  const numbers = lines.flatMap((line) => (line.endsWith('xxx') ? [parseInt(line, 10)] : []))
  assert.deepEqual(
    numbers,
    Array.from({ length: 300 }, (_, n) => n),
  )
  assert.ok(lines.includes('heard'))
})

test('one that writes without end before it can be heard is ended as lost', isTakenBack, async (t) => {
  const { fake, placement, takeOver, hasWritten } = await aloneWith(
    t,
    `writeFileSync(process.env.SHARED + '/written', '')
    for (;;) raw(1, 'x'.repeat(1000))`,
  )
  await hasWritten()
  await takeOver()
  const ending = await fake.ending(placement)
  assert.equal(ending.how, 'lost')
  assert.match(JSON.stringify(ending), /past its log/)
})

const SECRET = 'sk_live_4242SECRETHEAD_99TAILOFSECRET99'

/** It writes a part of a line past the frames, its agent is killed, and it writes the rest. */
async function brokenOff(t: TestContext, first: string, second: string) {
  const shared = mkdtempSync(path.join(os.tmpdir(), 'windlass-half-'))
  t.after(() => rmSync(shared, { recursive: true, force: true }))
  const text = `
    const { existsSync, writeSync } = await import('node:fs')
    const moment = () => new Promise((go) => setTimeout(go, 10))
    const turn = async (name) => { while (!existsSync(process.env.SHARED + name)) await moment() }
    console.log(String(process.pid))
    await turn('/half')
    writeSync(1, ${first})
    await turn('/go')
    writeSync(1, ${second} + '\\n')
    return null`
  const given = { secrets: { KEY: SECRET }, variables: { SHARED: shared } }
  const left = await abandoned(t, text, given, async ({ folder }) => {
    writeFileSync(path.join(shared, 'half'), '')
    // An agent that has read it and notes nothing gives no sign of that.
    const late = performance.now() + 5_000
    const isNoted = () => / m run_\w+ \d+ \d+ -1 /.test(textIn(path.join(folder, 'spool')))
    await untilPolled('it is noted that not all can be told again', () => isNoted() || performance.now() > late)
  })
  await left.takeOver()
  writeFileSync(path.join(shared, 'go'), '')
  return { ...left, ending: await left.fake.ending(left.placement) }
}

test('the rest of a secret that is half written when an agent is killed is not shown', isTakenBack, async (t) => {
  const first = "'token is ' + process.env.KEY.slice(0, 22)"
  const { placement, ending } = await brokenOff(t, first, 'process.env.KEY.slice(22)')
  assert.ok(!JSON.stringify(placement).includes('99TAILOFSECRET99'), JSON.stringify(linesOf(placement)))
  assert.notEqual(ending.how, 'returned')
})

test('a program that was amid a line without a secret is taken back', isTakenBack, async (t) => {
  const { ending } = await brokenOff(t, "'The first half of a line, '", "'and the second'")
  assert.deepEqual(ending, RETURNED)
})
