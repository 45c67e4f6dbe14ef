import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { figuresOf } from '../../support/folders.ts'
import { aFolder } from '../_kit/an-agent.ts'

async function anEmptyFolder(t: TestContext): Promise<string> {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const empty = path.join(folder, 'runs')
  mkdirSync(empty)
  return empty
}

test('figures are of all files below a folder, and of none where there is none', async (t) => {
  const folder = await anEmptyFolder(t)
  mkdirSync(path.join(folder, 'a', 'b'), { recursive: true })
  mkdirSync(path.join(folder, 'closed'))
  for (const [at, name] of ['one', 'a/two', 'a/b/three'].entries()) {
    const file = path.join(folder, name)
    writeFileSync(file, 'x'.repeat(at + 1))
    utimesSync(file, 0, 1000 + at)
  }
  chmodSync(path.join(folder, 'closed'), 0)
  const all = { files: 3, bytes: 6, oldestAt: 1_000_000, newestAt: 1_002_000, isCut: false }
  assert.deepEqual(await figuresOf(folder), all)
  assert.deepEqual(await figuresOf(folder, 6), all)
  assert.deepEqual((await figuresOf(folder, 5)).isCut, true)
  const none = { files: 0, bytes: 0, oldestAt: null, newestAt: null, isCut: false }
  assert.deepEqual(await figuresOf(path.join(folder, 'nowhere')), none)
})

test('folders count as files do: any number of them is cut', async (t) => {
  const folder = await anEmptyFolder(t)
  for (let at = 0; at < 300; at++) mkdirSync(path.join(folder, String(at)))
  const none = { files: 0, bytes: 0, oldestAt: null, newestAt: null }
  assert.deepEqual(await figuresOf(folder, 299), { ...none, isCut: true })
  assert.deepEqual(await figuresOf(folder, 300), { ...none, isCut: false })
})
