import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'

const SDK = path.resolve(import.meta.dirname, '../..')
const PROJECT = path.dirname(SDK)

/** What stands between `@example` and the end of its comment, or the next tag. */
function examplesIn(text: string): string[] {
  return [...text.matchAll(/^ *\* @example\n((?: *\*(?! @)(?!\/).*\n)+)/gm)].map(([, block = '']) =>
    block.replace(/^ *\* ?/gm, ''),
  )
}

test('every example in the docs of the SDK has the right types', async (t) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-examples-'))
  t.after(() => fs.rm(folder, { recursive: true, force: true }))
  const names = await fs.readdir(path.join(SDK, 'runtime'))
  const sources = ['index.ts', ...names.filter((name) => name.endsWith('.ts')).map((name) => `runtime/${name}`)]
  let count = 0
  for (const source of sources) {
    for (const example of examplesIn(await fs.readFile(path.join(SDK, source), 'utf8'))) {
      count += 1
      await fs.writeFile(path.join(folder, `${path.basename(source, '.ts')}-${count}.mts`), example)
    }
  }
  assert.ok(count >= 10, `only ${count} examples were found`)
  const compilerOptions = {
    rootDir: '/',
    typeRoots: [path.join(PROJECT, 'node_modules/@types')],
    paths: { windlass: [path.join(SDK, 'index.ts')] },
    noUnusedLocals: false,
    noUnusedParameters: false,
  }
  const config = { extends: path.join(PROJECT, 'tsconfig.json'), compilerOptions, include: [folder], exclude: [] }
  await fs.writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = path.join(PROJECT, 'node_modules/typescript/bin/tsc')
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(
    (error: { stdout: string }) => error,
  )
  assert.equal(stdout, '')
})
