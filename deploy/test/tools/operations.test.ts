import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { HandlersFor } from '@windlass/coordinator/api/call.ts'
import type { ExamplesOf } from '@windlass/shared/ops/example.ts'
import { PROJECT } from '../../tools/source-files.ts'

// What else a row can lack is told by completeness.test.ts and by the matrix.

const text = readFileSync(path.join(PROJECT, 'shared/ops/README.md'), 'utf8')
const [about = '', adding = ''] = text.split('\n## ')
const isThere = (file: string) => existsSync(path.join(PROJECT, file))

test('the README of the operation table names files that are there', () => {
  const cells = about.split('\n').flatMap((line) => /^\| (`.*?) \|/.exec(line)?.[1] ?? [])
  const machinery = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, file]) => file!))
  assert.ok(machinery.length > 10)
  for (const file of machinery) assert.ok(isThere(`shared/ops/${file.replace('<group>', 'environments')}`), file)
  const files = [...adding.matchAll(/`([a-z]+\/[^`]+)`/g)].map(([, file]) => file!)
  const scripts = [...adding.matchAll(/^npx node (\S+)/gm)].map(([, file]) => file!)
  assert.ok(files.length > 10 && scripts.length === 4)
  for (const file of [...files, ...scripts]) assert.ok(isThere(file), file)
})

test('it counts the files that an operation takes', () => {
  assert.match(adding, /^Six files/m)
  assert.equal(adding.match(/^\d+\. `/gm)?.length, 6)
})

test('a row without words and one without a handler do not compile', () => {
  // @ts-expect-error -- the words of `get`
  const examples: ExamplesOf<'orgs'> = {}
  // @ts-expect-error -- the handler of `get`
  const handlers: HandlersFor<'orgs'> = {}
  assert.deepEqual([examples, handlers], [{}, {}])
})
