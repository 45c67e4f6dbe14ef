import assert from 'node:assert/strict'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { lastLines, newLines, sizeOf } from '../../support/log-file.ts'
import { aFolder } from '../_kit/an-agent.ts'

const line = (n: number) => `{"at":${n},"level":"info","name":"line ${n}"}`
const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `${line(from + index)}\n`).join('')

async function aFile(t: TestContext): Promise<string> {
  const { folder, remove } = await aFolder()
  t.after(remove)
  return path.join(folder, 'agent.log')
}

test('the last lines are found across the pieces of a log, and across chunks', async (t) => {
  const file = await aFile(t)
  writeFileSync(`${file}.2`, lines(0, 10))
  writeFileSync(`${file}.1`, lines(10, 4000))
  writeFileSync(file, lines(4000, 4005))
  assert.deepEqual(await lastLines(file, { count: 2 }), [line(4003), line(4004)])
  const many = await lastLines(file, { count: 3999 })
  assert.deepEqual([many.length, many[0], many.at(-1)], [3999, line(6), line(4004)])
  assert.equal((await lastLines(file, { count: 100_000 })).length, 4005)
  assert.deepEqual(await lastLines(file, { count: 0 }), [])
  assert.deepEqual(await lastLines(file, { count: 10, since: 4003 }), [line(4003), line(4004)])
})

test('a log that is not there yet has no lines', async (t) => {
  assert.deepEqual(await lastLines(await aFile(t), { count: 10 }), [])
})

test('new lines come as they are written, whole, and go on in the next piece', async (t) => {
  const file = await aFile(t)
  writeFileSync(file, lines(0, 3))
  const stopped = new AbortController()
  t.after(() => stopped.abort())
  const following = newLines(file, await sizeOf(file), stopped.signal)
  const next = async () => (await following.next()).value
  appendFileSync(file, `${line(3)}\n{"at":4,"name":"hä`)
  assert.equal(await next(), line(3))
  appendFileSync(file, 'lf"}\n')
  assert.equal(await next(), '{"at":4,"name":"hälf"}')
  renameSync(file, `${file}.1`)
  writeFileSync(file, lines(5, 7))
  assert.deepEqual([await next(), await next()], [line(5), line(6)])
  stopped.abort()
  assert.equal((await following.next()).done, true)
})
