import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { listOf, PROCESSES, readNotes } from '../../tools/file-seconds.ts'
import { PROJECT } from '../../tools/source-files.ts'
import { LONG, notFound, testFiles } from '../../tools/tiers.ts'

const RUNNER = path.join(PROJECT, 'deploy/tools/test.ts')
const REPORTER = path.join(PROJECT, 'deploy/tools/file-seconds.ts')

/** Node without what the test runner has told this process. */
function node(args: string[], more: Record<string, string> = {}) {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
    cwd: PROJECT,
    env: { ...env, ...more },
    encoding: 'utf8',
    timeout: 120_000,
  })
}

test('every test file belongs to a tier, storms to theirs alone, and those that play rounds to both', () => {
  const quick = testFiles('test')
  const storms = testFiles('storm')
  assert.ok(quick.includes('deploy/test/tools/tiers.test.ts'))
  assert.ok(storms.includes('deploy/e2e/storm/chaos.test.ts'))
  assert.ok(storms.includes('coordinator/test/db/silence.test.ts'))
  const both = quick.filter((file) => storms.includes(file))
  assert.ok(both.includes('sdk/test/runtime/engine/property.test.ts'))
  assert.deepEqual(
    both.filter((file) => file.includes('/storm/') || file.includes('/silence') || LONG.includes(file)),
    [],
  )
  assert.deepEqual(testFiles('test', ['did-you-mean']), ['shared/test/did-you-mean.test.ts'])
})

test('a file of the other tier is not found, and the command that runs it is named', () => {
  const { status, stderr } = node([RUNNER, 'storm/fleet-kills'])
  assert.equal(status, 1)
  assert.equal(stderr, '"storm/fleet-kills" belongs to the other tier: npm run test:storm -- storm/fleet-kills\n')
  assert.match(notFound('storm', ['did-you-mean']), /npm test -- did-you-mean$/)
  assert.match(notFound('test', ['no such file']), /^No test file has "no such file" in its path/)
})

test('a budget is for storms, and is a number', () => {
  assert.match(node([RUNNER, '--minutes', '3']).stderr, /npm run test:storm -- --minutes 12/)
  assert.match(
    node([RUNNER, '--tier', 'storm', '--minutes', 'few']).stderr,
    /--minutes is a number above 0 and up to 600, not few/,
  )
})

test('a part is one that there is, and has files', () => {
  assert.match(node([RUNNER, '--shard', '4/3']).stderr, /--shard is the number of a part .*, as in 2\/3, not 4\/3/)
  assert.match(node([RUNNER, '--shard', '2/3', 'did-you-mean']).stderr, /only 1 test files, so part 2\/3 has none/)
})

test('seconds and failures of each file are noted, also of one that cannot be loaded', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'windlass-seconds-'))
  try {
    const files = {
      good: 'test("a", () => {})',
      bad: 'test("b", () => { throw new Error("no") })',
      absent: 'import "./no.mjs"',
      made: 'import { make } from "./kit.mjs"; make()',
    }
    writeFileSync(
      path.join(folder, 'kit.mjs'),
      `import { test } from 'node:test'\nexport const make = () => test('c', () => {})`,
    )
    const paths = Object.entries(files).map(([name, text]) => {
      const file = path.join(folder, `${name}.test.mjs`)
      writeFileSync(file, `import { test } from 'node:test'\n${text}\n`)
      return file
    })
    const processes = path.join(folder, 'processes.json')
    const entries = paths.map((file) => path.relative(PROJECT, file))
    writeFileSync(processes, JSON.stringify(entries.map((entry) => ({ entry, files: [entry] }))))
    const notes = path.join(folder, 'notes.jsonl')
    const options = ['--test', `--test-reporter=${REPORTER}`, `--test-reporter-destination=${notes}`]
    assert.equal(node([...options, ...paths], { [PROCESSES]: processes }).status, 1)
    const { results, executed, hasFailed, failures } = readNotes(notes)
    assert.equal(hasFailed, true)
    const textOf = (name: string) => failures.find((each) => each.name === name)!.text
    assert.match(textOf('b'), /^Error: no\n {4}at .*bad\.test\.mjs/)
    assert.equal(failures.length, 2)
    assert.equal(executed, 4, 'node:test counts the test that a kit makes for the file of the kit')
    assert.ok(results.every(({ ms }) => ms > 0))
    assert.deepEqual(
      Object.fromEntries(results.map(({ file, tests, failed }) => [path.basename(file, '.test.mjs'), [tests, failed]])),
      { absent: [1, 1], bad: [1, 1], good: [1, 0], made: [0, 0] },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the list has long files first, short ones together, failures always, and what did not end', () => {
  const list = listOf(
    [
      { file: 'short.test.ts', ms: 200, tests: 3, failed: 0 },
      { file: 'long.test.ts', ms: 12_340, tests: 1, failed: 0 },
      { file: 'red.test.ts', ms: 100, tests: 2, failed: 1 },
    ],
    ['short.test.ts', 'long.test.ts', 'red.test.ts', 'lost.test.ts'],
  )
  assert.deepEqual(list.split('\n'), [
    'Seconds per file:',
    '    12.3  long.test.ts',
    '     0.1  red.test.ts  1 failed',
    '     0.2  1 files of less than 1 s each',
    '    12.6  3 files, 6 tests',
    '       –  lost.test.ts  did not end',
  ])
})
