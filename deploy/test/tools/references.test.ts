import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { exampleOf, isDocumented } from '@windlass/shared/ops/words.ts'
import { isForCallers, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import { DOCS, outOfDate, references } from '../../tools/references.ts'
import { curlOf } from '../../tools/references/curl.ts'
import { compactJson, table } from '../../tools/references/markdown.ts'
import { readSource } from '../../tools/import-lines.ts'
import { PROJECT, sourceFiles } from '../../tools/source-files.ts'

const wanted = references()

test('deploy/docs says what is; after a change run `npx node deploy/tools/references.ts`', () => {
  assert.deepEqual(outOfDate(DOCS, wanted), [])
})

test('a document that says something else, or is not there, is named', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'windlass-references-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(wanted)) writeFileSync(path.join(folder, name), text)
  assert.deepEqual(outOfDate(folder, wanted), [])
  writeFileSync(path.join(folder, 'cli.md'), `${wanted['cli.md']}\n`)
  rmSync(path.join(folder, 'errors.md'))
  assert.deepEqual(outOfDate(folder, wanted), ['cli.md', 'errors.md'])
})

test('a command of the references is read by a shell as the request of the example', () => {
  for (const row of allOps.filter(isDocumented)) {
    // The shell takes the command apart; `printf` stands in for curl.
    const script = curlOf(row).replace(/^curl /, "printf '%s\\0' ")
    const env = {
      PATH: process.env.PATH,
      WINDLASS_URL: 'http://localhost',
      WINDLASS_API_KEY: 'k',
      WINDLASS_SESSION: 's',
    }
    const args = execFileSync('sh', ['-c', script], { encoding: 'utf8', env }).split('\0').slice(0, -1)
    assert.ok(URL.canParse(args[1]!), `${row.id}: ${args[1]}`)
    const body = args.includes('-d') ? (JSON.parse(args[args.indexOf('-d') + 1]!) as object) : {}
    const { input } = exampleOf(row)
    for (const [name, value] of Object.entries(body)) assert.deepEqual(value, input[name], row.id)
    const credential = args.find((arg) => arg.startsWith('Authorization'))
    const who = isSessionOnly(row) ? 'Authorization: Bearer s' : 'Authorization: Bearer k'
    assert.equal(credential, isForCallers(row) ? who : undefined, row.id)
  }
})

test('tables stand in columns, and a bar in a cell does not end it', () => {
  const text = table(
    ['a', 'what'],
    [
      ['`x | y`', 'two\nlines'],
      ['z', ''],
    ],
  )
  assert.deepEqual(text.split('\n'), [
    '| a        | what |',
    '| -------- | --- |',
    '| `x \\| y` | two lines |',
    '| z        |  |',
  ])
})

test('JSON is broken over lines only where it is long, and stays the same', () => {
  const value = { short: [1, 2], long: Array.from({ length: 40 }, (_, at) => ({ at, text: 'x' })), none: null }
  const text = compactJson(value)
  assert.deepEqual(JSON.parse(text), value)
  assert.ok(text.split('\n').every((line) => line.length <= 110))
  assert.match(text, /"short": \[ 1, 2 \]/)
})

test('examples are for documents: nothing that starts loads them', () => {
  // The document and the tools are made when they are first asked for.
  const mayLoad = /^(deploy|[a-z]+\/test)\/|^coordinator\/(api\/openapi[a-z-]*|mcp\/schema)\.ts$/
  const examples = /^shared\/ops\/([a-z-]+\/)?(words|example-things)\.ts$/
  const loaders = sourceFiles(PROJECT, '.ts').filter((file) => {
    if (mayLoad.test(file) || examples.test(file)) return false
    const text = readFileSync(path.join(PROJECT, file), 'utf8')
    if (!/\/(words|example-things)\.ts'/.test(text)) return false
    const { imports } = readSource(file, text)
    return imports.some(({ specifier, typeOnly }) => !typeOnly && examples.test(pathOf(file, specifier)))
  })
  assert.deepEqual(loaders, [])
})

const pathOf = (file: string, specifier: string) =>
  specifier.startsWith('.')
    ? path.posix.join(path.posix.dirname(file), specifier)
    : specifier.replace(/^@windlass\//, '')
