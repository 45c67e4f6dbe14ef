import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { partFiles, stripTypes } from '../../start/strip.ts'

test('what no source stands for any more is removed, and what somebody is writing stays', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-strip-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await stripTypes(folder, partFiles())
  const wanted = await readdir(folder)
  assert.ok(wanted.length > 100)

  const beingWritten = `new.mjs.${process.pid}`
  // Process numbers end at 2^22.
  for (const name of ['old.mjs', 'old.mjs.4194305', beingWritten]) await writeFile(join(folder, name), '')
  await stripTypes(folder, partFiles())
  assert.deepEqual((await readdir(folder)).sort(), [...wanted, beingWritten].sort())
})

test('a module whose stripped text was removed meanwhile is loaded all the same', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-strip-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = 'shared/time.ts'
  const args = await stripTypes(folder, [file])
  const load = `await import(${JSON.stringify(pathToFileURL(file).href)}); console.log('loaded')`
  const loaded = () => promisify(execFile)(process.execPath, [...args, '--input-type=module', '-e', load])
  assert.equal((await loaded()).stdout, 'loaded\n')
  for (const name of await readdir(folder)) if (name.endsWith('.mjs')) await rm(join(folder, name))
  assert.equal((await loaded()).stdout, 'loaded\n')
})

test('sources with the same text do not hinder each other', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-strip-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const names = Array.from({ length: 20 }, (_, n) => join(folder, 'sources', `${n}.ts`))
  await mkdir(join(folder, 'sources'))
  for (const name of names) await writeFile(name, 'export const same: number = 1\n')
  await stripTypes(
    join(folder, 'stripped'),
    names.map((name) => relative('.', name)),
  )
  assert.equal((await readdir(join(folder, 'stripped'))).length, 2)
})
