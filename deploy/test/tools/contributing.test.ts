import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../../', import.meta.url)
const text = readFileSync(new URL('CONTRIBUTING.md', root), 'utf8')

test('the walks of CONTRIBUTING name files that are there, and the longest has thirty', () => {
  const walks = text.split(/^## /m).filter((section) => /^1\. /m.test(section))
  assert.equal(walks.length, 3)
  for (const walk of walks) {
    const files = [...walk.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file]) => file!)
    assert.ok(files.length >= 10 && files.length <= 30, `${files.length} files`)
    for (const file of files) assert.ok(existsSync(new URL(file, root)), file)
  }
})

test('the rooms that CONTRIBUTING lists are there', () => {
  const rows = text.split('\n').filter((line) => line.startsWith('| `'))
  assert.ok(rows.length > 10)
  for (const row of rows) {
    const room = row.split('|')[1]!
    for (const [, path] of room.matchAll(/`([a-z]+\/[^`]+)`/g)) assert.ok(existsSync(new URL(path!, root)), path)
  }
})
