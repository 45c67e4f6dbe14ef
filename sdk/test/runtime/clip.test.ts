import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clip } from '../../runtime/clip.ts'

test('a cut is marked, and never between the halves of a character', () => {
  assert.equal(clip('ab\u{1F511}cd', 3), 'ab…')
  assert.equal(clip('ab\u{1F511}cd', 4), 'ab\u{1F511}…')
  assert.equal(clip('ab\u{1F511}', 4), 'ab\u{1F511}')
})
