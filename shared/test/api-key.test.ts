import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { isWellFormed, mintSecret } from '../api-key.ts'

test('a minted key has the form, and never comes twice', () => {
  const keys = Array.from({ length: 500 }, () => mintSecret('wl_'))
  assert.equal(new Set(keys).size, keys.length)
  for (const key of keys) {
    assert.match(key, /^wl_[0-9A-Za-z]{46}$/)
    assert.ok(isWellFormed('wl_', key))
  }
})

test('the last six digits are the CRC-32 of what stands before them', () => {
  const key = mintSecret('wlr_')
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const value = Array.from(key.slice(-6)).reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0)
  assert.equal(value, crc32(key.slice(0, -6)))
})

test('one changed, missing or added character is noticed offline', () => {
  const key = mintSecret('wl_')
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === 'a' ? 'b' : 'a'
    assert.equal(isWellFormed('wl_', key.slice(0, at) + other + key.slice(at + 1)), false)
  }
  assert.equal(isWellFormed('wl_', key.slice(0, -1)), false)
  assert.equal(isWellFormed('wl_', `${key}0`), false)
  assert.equal(isWellFormed('wlr_', key), false)
  assert.equal(isWellFormed('wl_', ''), false)
})
