import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeployError } from '../../workflows/deploy-error.ts'
import { checkSourceFiles } from '../../workflows/source-files.ts'

const MOST_BYTES = 50 * 1024 * 1024

function refusal(...paths: string[]): DeployError {
  try {
    checkSourceFiles(
      paths.map((path) => ({ path, content: '' })),
      MOST_BYTES,
    )
  } catch (error) {
    if (error instanceof DeployError) return error
    throw error
  }
  throw new Error(`was accepted: ${paths.join(', ')}`)
}

test('plain relative paths are fine, dots within names too', () => {
  checkSourceFiles(
    [
      'workflow.jsonc',
      'index.ts',
      'lib/..a/b...ts',
      '.env.example',
      'vendor/@scope/pkg/sub.mjs',
      `${'a/'.repeat(32)}b`,
    ].map((path) => ({
      path,
      content: '',
    })),
    MOST_BYTES,
  )
})

for (const path of [
  '/etc/passwd',
  '../x',
  'a/../../x',
  'a/..',
  'C:/x',
  'C:x',
  'a\\b',
  'a\0b',
  'a\nb',
  '',
  './a',
  'a//b',
  'a/',
  'a/./b',
  'x'.repeat(600),
  `${'a/'.repeat(33)}b`,
]) {
  test(`the path ${JSON.stringify(path.slice(0, 20))} is refused by name`, () => {
    const error = refusal('index.ts', path)
    assert.equal(error.detail.path.slice(0, 100), `paths/${path}`.slice(0, 100))
    assert.ok(error.message.includes(JSON.stringify(path).slice(0, 100).replace(/"$/, '')), error.message)
  })
}

test('two names that a file system may take for one are refused', () => {
  assert.match(refusal('a.ts', 'a.ts').message, /there twice/)
  assert.match(refusal('lib/a.ts', 'lib/A.ts').message, /differs from `lib\/a.ts` only in case/)
  assert.match(refusal('caf\u00e9.ts', 'cafe\u0301.ts').message, /accents/)
  assert.match(refusal('a', 'a/b').message, /both a file and the folder/)
})

test('too many files and too much of them are refused', () => {
  assert.match(
    refusal(...Array.from({ length: 2_001 }, (_, n) => `${n}.ts`)).message,
    /2001 files are more than the 2000/,
  )
  const half = 'x'.repeat(26 * 1024 * 1024)
  assert.throws(
    () =>
      checkSourceFiles(
        [
          { path: 'a.ts', content: half },
          { path: 'b.ts', content: half },
        ],
        MOST_BYTES,
      ),
    (error: DeployError) => error.detail.bytes === 2 * half.length && error.detail.limitBytes === MOST_BYTES,
  )
})

test('no files at all is refused', () => {
  assert.match(refusal().message, /needs `workflow.jsonc`/)
})
