// The journal of a run is in the agent's memory until its program has begun, and no longer.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import type { StartMessage } from '@windlass/shared/wire/program.ts'
import type { HostProcess } from '../../../run/hosts/host-process.ts'
import { journalMessage } from '../../../run/program/frames.ts'
import { Steering } from '../../../run/program/steering.ts'
import { aHandMade } from '../../_kit/hand-made.ts'
import { linesOf } from '../../_kit/fake-coordinator.ts'
import { withAgent } from '../../_kit/with-agent.ts'
import { aStage, aStart } from '../programs.ts'

const MIB = 1024 * 1024
const JOURNAL_MIB = 48
const records = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ n: i + 1, state: 'open', args: 'x'.repeat(MIB) }))

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function buffersMib(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers / MIB
}

withAgent('of a program that has begun its journal is not kept', async ({ fake }) => {
  fake.journal = (response) => response.end(JSON.stringify(records(JOURNAL_MIB)))
  const before = buffersMib()
  const program = await aHandMade(`frame('live'); say('begun'); await message('wake'); done()`)
  const placement = fake.offer(program, { replay: true, journal: { entries: JOURNAL_MIB, text: null } })
  await until('it has begun', () => linesOf(placement).includes('begun'))
  const isLetGo = () => buffersMib() - before < JOURNAL_MIB / 2
  await untilPolled('its journal is let go of', isLetGo, { more: () => `${buffersMib()} MiB` })
  assert.notEqual(placement.entries.at(-1)?.[0], 'end')
})

/** Takes the place of Node: the first one reads nothing, the next one answers with what it was given. */
async function theFirstIsDeaf(t: TestContext): Promise<string> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-deaf-'))
  t.after(() => fs.rm(folder, { recursive: true, force: true }))
  // Programs may have users of their own.
  await fs.chmod(folder, 0o777)
  const [file, reads, isOver] = ['node', 'reads.cjs', 'over'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(
    reads,
    `const fs = require('node:fs')
    const take = (bytes) => {
      const buffer = Buffer.alloc(bytes)
      for (let at = 0; at < bytes; ) at += fs.readSync(4, buffer, at, bytes - at)
      return buffer
    }
    const say = (code, text) => {
      const head = Buffer.alloc(13)
      head.write(code)
      head.writeUInt32LE(text.length, 1)
      fs.writeSync(3, Buffer.concat([head, Buffer.from(text)]))
    }
    const numbers = []
    for (;;) {
      const message = JSON.parse(take(take(4).readUInt32LE()))
      if (message.t === 'start') break
      numbers.push(...message.records.map(({ n }) => n))
    }
    say('b', '')
    say('R', JSON.stringify(numbers))`,
  )
  const line = `[ -e ${isOver} ] && exec ${process.execPath} ${reads}\ntouch ${isOver}\nexec sleep 1000`
  writeFileSync(file, `#!/bin/sh\n${line}\n`, { mode: 0o755 })
  return file
}

test('a process that takes over is given the journal that the one before it had, and then nobody has it', async (t) => {
  const stage = await aStage(t, { execPath: await theFirstIsDeaf(t) })
  const bundle = path.join(stage.home, 'bundle')
  mkdirSync(bundle)
  writeFileSync(path.join(bundle, 'main.mjs'), '')
  const messages = records(8).map((record) => journalMessage([Buffer.from(JSON.stringify(record))]))
  const start = { ...aStart(bundle), journal: { messages, completed: [] }, entries: 8, timeoutMs: 600_000 }
  const program = stage.processes.run(start, () => {})
  await program.started
  const deaf = program.host()!
  await untilPolled('it is there', async () => /sleep/.test(await fs.readFile(`/proc/${deaf.pid}/cmdline`, 'latin1')))
  assert.ok(deaf.unreadBytes() > 0)
  assert.equal(start.journal.messages.length, 8)
  deaf.kill()
  assert.deepEqual(await program.done, { how: 'returned', outputText: '[1,2,3,4,5,6,7,8]' })
  assert.equal(start.journal.messages.length, 0)
})

const JOURNAL_MS = 1_000

/** A process that reads when it is told to. */
function aReader(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const killed = t.mock.fn()
  let read = () => {}
  const heard: string[] = []
  const host = {
    exit: new Promise(() => {}),
    hasExited: () => false,
    kill: killed,
    send: ({ t: kind }: { t: string }) => void heard.push(kind),
    sendBytes: () => new Promise<void>((resolve) => (read = resolve)),
  }
  const steering = new Steering({ disarm: () => {} }, false, JOURNAL_MS)
  steering.enter(host as unknown as HostProcess)
  const journal = { messages: [Buffer.from('1'), Buffer.from('2')], completed: [] }
  steering.start({ t: 'start' } as StartMessage, journal)
  const after = async (ms: number, act = () => {}) => {
    await nextTurn()
    // Each look comes on its own.
    for (let passed = 0; passed < ms; passed += 100) t.mock.timers.tick(100)
    act()
    await nextTurn()
  }
  return { steering, journal, heard, killed, after, read: () => read() }
}

test('a process that does not read on in its journal is ended', async (t) => {
  const { after, read, killed } = aReader(t)
  await after(JOURNAL_MS - 100, read)
  await after(JOURNAL_MS - 100)
  assert.equal(killed.mock.callCount(), 0)
  await after(100)
  await after(5 * JOURNAL_MS)
  assert.equal(killed.mock.callCount(), 1)
})

test('one that has read it and does not begin is ended, and one that has begun is not', async (t) => {
  for (const begins of [false, true]) {
    const { after, read, killed, heard, steering, journal } = aReader(t)
    await after(JOURNAL_MS - 100, read)
    await after(JOURNAL_MS - 100, read)
    assert.deepEqual(heard, ['start'])
    await after(JOURNAL_MS - 100, () => begins && steering.step({ t: 'begun' }))
    await after(5 * JOURNAL_MS)
    assert.equal(killed.mock.callCount(), begins ? 0 : 1)
    assert.equal(journal.messages.length, begins ? 0 : 2)
    t.mock.timers.reset()
  }
})
