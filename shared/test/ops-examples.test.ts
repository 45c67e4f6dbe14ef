import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestOf } from '../ops/call.ts'
import { exampleOf, isDocumented, meaningOf } from '../ops/words.ts'
import { allOps, groups, ops } from '../ops/index.ts'
import { decodeStrings, pathNames } from '../ops/fill-route.ts'

const rows = allOps.filter(isDocumented)

test('every example is what its row takes and what its row answers', () => {
  for (const row of rows) {
    const { input, output } = exampleOf(row)
    const taken = row.input.safeParse(input)
    assert.ok(taken.success, `${row.id} refuses its example: ${taken.error?.message}`)
    const answered = row.output.safeParse(output)
    assert.ok(answered.success, `${row.id} does not answer its example: ${answered.error?.message}`)
  }
  assert.ok(rows.length > 40)
})

test('an answer in an example holds nothing that its row does not know', () => {
  for (const row of rows.filter((one) => one.wire === undefined)) {
    const { output } = exampleOf(row)
    assert.deepEqual(row.output.parse(output), output, row.id)
  }
})

test('an example put into a request by a client is read back as what it was', () => {
  for (const row of rows) {
    const { input } = exampleOf(row)
    const { url, body } = requestOf({ url: 'http://localhost' }, row, input)
    const { pathname, searchParams } = new URL(url)
    const names = pathNames(row.path)
    const pattern = new RegExp(`^${row.path.replace(/\{\w+\}/g, '([^/]+)')}$`)
    const parts = pattern.exec(pathname)?.slice(1).map(decodeURIComponent) ?? []
    const strings = {
      ...Object.fromEntries(names.map((name, at) => [name, parts[at]!])),
      ...Object.fromEntries(searchParams),
    }
    const fields = { ...decodeStrings(row.input, strings), ...(JSON.parse(body ?? '{}') as object) }
    assert.deepEqual(fields, input, row.id)
  }
})

test('every field that can be sent has a meaning, and every group has one', () => {
  for (const row of rows) {
    for (const name of Object.keys(row.input.shape))
      assert.ok(meaningOf(row, name), `${row.id} does not say what \`${name}\` is`)
    assert.ok(groups[row.id.split('.')[0] as keyof typeof groups].docs, row.id)
  }
})

test('what is said beside the summary does not repeat it, and every operation that it names exists', () => {
  const ids = new Set(allOps.map((row) => row.id))
  const names = Object.keys(ops).join('|')
  for (const row of rows) {
    const { about } = exampleOf(row)
    assert.ok(about.length >= 20 && about !== row.summary, row.id)
    for (const [, id] of about.matchAll(new RegExp(`\`((?:${names})\\.[a-z]\\w*)\``, 'gi'))) {
      assert.ok(ids.has(id!), `${row.id} speaks of ${id}`)
    }
  }
})

test('a row of agents or programs has no example', () => {
  assert.throws(() => exampleOf({ id: 'runnerSurface.claims' }), /has no example/)
})
