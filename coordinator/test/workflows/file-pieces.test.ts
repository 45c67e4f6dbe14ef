import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filesOf, piecesOf } from '../../workflows/file-pieces.ts'

/** As far as a message is kept: it is printed as JSON and read again. */
const overTheChannel = <T>(value: T) => JSON.parse(JSON.stringify(value)) as T
/** A file of 3 MB cut in the middle of pairs of surrogates, many small ones, and one without content. */
const FILES = [
  { path: 'index.ts', content: 'export const run = () => 1' },
  { path: 'large.txt', content: `x${'😀'.repeat(1_500_000)}` },
  ...Array.from({ length: 1000 }, (_, n) => ({ path: `small/${n}.txt`, content: `"${n}"`.repeat(300) })),
  { path: 'empty.txt', content: '' },
]

test('files come out of their pieces as they went in', () => {
  const pieces = piecesOf(FILES).map(overTheChannel)
  assert.deepEqual(filesOf(pieces), FILES)
})

test('no piece is so large that printing it would keep others waiting', () => {
  const sizes = piecesOf(FILES).map((piece) => piece.reduce((sum, { content }) => sum + content.length, 0))
  assert.ok(sizes.length >= 6)
  assert.ok(Math.max(...sizes) <= 512 * 1024)
})
