import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { repeated } from './_kit/repeated.ts'

const KIT = path.join(import.meta.dirname, '_kit/repeated.ts')
const FAST_CHECK = import.meta.resolve('fast-check')

/** A property that fails for some numbers only, in a file of its own. */
const FAILING = `
import * as fc from ${JSON.stringify(FAST_CHECK)}
import { test } from 'node:test'
import { repeatable } from ${JSON.stringify(KIT)}
let tries = 0
test("numbers aren't large", (t) => {
  try {
    fc.assert(fc.property(fc.nat(), (n) => ++tries > 0 && n < 4711), { numRuns: 1000, ...repeatable(t) })
  } finally {
    console.log('tries', tries)
  }
})
`

function run(file: string, env: Record<string, string>): string {
  const { NODE_TEST_CONTEXT: _, ...others } = process.env
  const { stdout, status } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    env: { ...others, ...env },
    encoding: 'utf8',
    timeout: 60_000,
  })
  assert.equal(status, 1, 'the property holds')
  return stdout
}

test('a failing property prints the command that tries exactly the case that failed', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'windlass-repeated-'))
  try {
    const file = path.join(folder, 'large.test.ts')
    writeFileSync(file, FAILING)
    const first = run(file, {})
    const command = /Exactly this case: (.*)/.exec(first)?.[1] ?? ''
    const given = /^WINDLASS_TEST_SEED=(\S+) WINDLASS_TEST_PATH=(\S+) WINDLASS_TEST_NAME='(.*)' npm test -- \S*large$/
    const [, seed = '', at = '', name] = given.exec(command) ?? []
    assert.equal(name, String.raw`numbers aren'\''t large`, command)
    const again = run(file, { WINDLASS_TEST_SEED: seed, WINDLASS_TEST_PATH: at })
    const counterexample = /Counterexample: \[\d+\]/
    assert.deepEqual(counterexample.exec(again)?.[0], counterexample.exec(first)?.[0] ?? '')
    assert.match(again, /^tries 1$/m)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the command names the tier and the file, and quotes what a shell would take apart', () => {
  const file = path.resolve(import.meta.dirname, '../../deploy/e2e/property.test.ts')
  const before = process.env.WINDLASS_TEST_TIER
  process.env.WINDLASS_TEST_TIER = 'storm'
  try {
    const command = repeated(file, { SEED: 7, PROGRAM: 'killed 3' })
    assert.equal(
      command,
      "WINDLASS_TEST_SEED=7 WINDLASS_TEST_PROGRAM='killed 3' npm run test:storm -- deploy/e2e/property",
    )
  } finally {
    if (before === undefined) delete process.env.WINDLASS_TEST_TIER
    else process.env.WINDLASS_TEST_TIER = before
  }
})
