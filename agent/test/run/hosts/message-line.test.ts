// What comes for as long as a run lasts does not pile up for a program that reads nothing.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import type { ProgramMessage } from '@windlass/shared/wire/program.ts'
import { makePipesNow, openInput } from '../../../os/named-pipes.ts'
import { openMessageLine } from '../../../run/hosts/message-line.ts'
import { encodeMessage } from '../../../run/program/frames.ts'
import { handMadeFiles } from '../../_kit/hand-made.ts'
import { aStage, aStart, texts } from '../programs.ts'

const MANY = 200_000
/** Far more than a pipe holds, with what a process reads ahead. */
const LONG = 'x'.repeat(1_000_000)

const aWake = (n: number, result = 'null'): ProgramMessage => ({
  t: 'wake',
  completions: [{ n, state: 'done', result: JSON.stringify(result) }],
})
const committed = (count: number): ProgramMessage => ({ t: 'kept', count })
const aToken = (text: string): ProgramMessage => ({ t: 'token', token: text })

/** A line over a real pipe. What the other end reads: a wake is its number, anything else as it is. */
function aLine(t: TestContext) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-line-'))
  const file = path.join(folder, 'messages')
  makePipesNow([file])
  const { given, write } = openInput(file)
  const reader = new Socket({ fd: given, readable: true, writable: false })
  t.after(() => {
    write.destroy()
    reader.destroy()
    rmSync(folder, { recursive: true, force: true })
  })
  return { line: openMessageLine(write), write, read: (count: number) => readFrom(reader, count) }
}

async function readFrom(reader: Socket, count: number): Promise<unknown[]> {
  const messages: unknown[] = []
  let held = Buffer.alloc(0)
  for await (const chunk of reader) {
    held = Buffer.concat([held, chunk as Buffer])
    for (; held.length >= 4 && held.length >= 4 + held.readUInt32LE(); held = held.subarray(4 + held.readUInt32LE())) {
      const message = JSON.parse(held.toString('utf8', 4, 4 + held.readUInt32LE())) as ProgramMessage
      messages.push(message.t === 'wake' ? message.completions[0]?.n : message)
    }
    if (messages.length >= count) break
  }
  return messages
}

test('a full pipe is told the newest of what says all, when there is room', async (t) => {
  const { line, read } = aLine(t)
  line.send(aWake(1, LONG))
  const unread = line.unreadBytes()
  assert.ok(unread > 0, 'the pipe is full')
  for (let n = 1; n <= MANY; n++) line.send(committed(n))
  line.send(aToken('old'))
  line.send(aToken('new'))
  assert.equal(line.unreadBytes(), unread)
  assert.deepEqual(await read(3), [1, committed(MANY), aToken('new')])
})

test('what says all is told ahead of whatever is said after it, and never twice', async (t) => {
  const { line, read } = aLine(t)
  line.send(aWake(1, LONG))
  line.send(committed(1))
  line.send(committed(2))
  line.send(aWake(2))
  line.send(committed(3))
  void line.sendBytes(encodeMessage(aWake(3)))
  line.send(committed(4))
  line.send(committed(5))
  line.send(aWake(4))
  assert.deepEqual(await read(7), [1, committed(2), 2, committed(3), 3, committed(5), 4])
})

test('a program that reads nothing for long is told how much is committed by now', async (t) => {
  const stage = await aStage(t)
  const folder = path.join(stage.home, 'deaf')
  const listens = path.join(stage.home, 'listens')
  mkdirSync(folder)
  const files = handMadeFiles(`messages.pause(); say('deaf')
    while (!fs.existsSync(input)) await new Promise((resolve) => setTimeout(resolve, 10))
    messages.resume()
    const { count } = await kept(${MANY})
    done([count, inbox.length])`)
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text)
  const deaf = Promise.withResolvers<void>()
  const start = { ...aStart(folder), inputText: JSON.stringify(listens), timeoutMs: 600_000 }
  const program = stage.processes.run(start, (events) => {
    if (texts(events).includes('deaf')) deaf.resolve()
  })
  await deaf.promise
  program.wake([{ n: 1, state: 'done', result: JSON.stringify(LONG) }])
  const unread = program.host()!.unreadBytes()
  assert.ok(unread > 0, 'the pipe is full')
  for (let count = 1; count <= MANY; count++) program.confirm(count)
  assert.equal(program.host()!.unreadBytes(), unread)
  writeFileSync(listens, '')
  assert.deepEqual(await program.done, { how: 'returned', outputText: `[${MANY},0]` })
})
