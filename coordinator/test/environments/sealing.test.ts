import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { ringOf } from '../../environments/secret-keys.ts'
import { newKeyText, open, readKey, seal, sealedWith } from '../../environments/sealing.ts'

const aKey = () => readKey(newKeyText())!
const seat = { orgId: 'org_1' as OrgId, environment: 'staging', name: 'TOKEN' }
const silent = createLog({}, 'error', { write: () => {} })

test('what is sealed opens again, whatever it is, and is not to be seen in its sealed form', (t) => {
  const key = aKey()
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }), (text) => {
      const sealed = seal(key, seat, text)
      assert.match(sealed, /^v1\.[0-9a-f]{12}\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{22,}$/)
      assert.equal(sealedWith(sealed), key.fingerprint)
      assert.equal(open(key, seat, sealed), text)
      assert.notEqual(seal(key, seat, text), sealed)
    }),
    repeatable(t),
  )
})

test('a sealed value opens only where it belongs', () => {
  const key = aKey()
  const sealed = seal(key, seat, 'hush')
  for (const other of [
    { ...seat, orgId: 'org_2' as OrgId },
    { ...seat, environment: '' },
    { ...seat, environment: 'stagin' },
    { ...seat, name: 'gTOKEN', environment: 'stagin' },
    { ...seat, name: 'OTHER' },
  ])
    assert.equal(open(key, other, sealed), undefined, JSON.stringify(other))
})

test('a single bit that is changed keeps a sealed value from opening', () => {
  const key = aKey()
  const sealed = seal(key, seat, 'hush, this is a secret')
  const [version, fingerprint, nonce, body] = sealed.split('.') as [string, string, string, string]
  const flips = (text: string) =>
    Array.from({ length: Buffer.from(text, 'base64url').length * 8 }, (_, bit) => {
      const bytes = Buffer.from(text, 'base64url')
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      return bytes.toString('base64url')
    })
  for (const one of flips(body)) assert.equal(open(key, seat, [version, fingerprint, nonce, one].join('.')), undefined)
  for (const one of flips(nonce)) assert.equal(open(key, seat, [version, fingerprint, one, body].join('.')), undefined)
  // A tag that is cut short would be easier to guess.
  for (let length = 0; length < body.length; length++)
    assert.equal(open(key, seat, [version, fingerprint, nonce, body.slice(0, length)].join('.')), undefined)
  for (const other of ['', 'v1', 'v1...', `v2.${fingerprint}.${nonce}.${body}`, 'plain text', '....'])
    assert.equal(open(key, seat, other), undefined)
})

test('the first key seals and all open; a key that is missing is named', () => {
  const [old, fresh, stranger] = [aKey(), aKey(), aKey()]
  const before = ringOf([old], silent)
  const after = ringOf([fresh, old], silent)
  assert.equal(after.open(seat, before.seal(seat, 'hush')), 'hush')
  assert.equal(sealedWith(after.seal(seat, 'hush')), fresh.fingerprint)
  assert.throws(
    () => after.open(seat, ringOf([stranger], silent).seal(seat, 'hush')),
    (error: Error & { code?: string; detail?: object }) => {
      assert.equal(error.code, 'SECRETS_UNAVAILABLE')
      assert.ok(error.message.includes(stranger.fingerprint))
      assert.ok(!error.message.includes('hush'))
      return true
    },
  )
})

test('a key is 32 bytes in base64, and nothing else', () => {
  const text = newKeyText()
  assert.equal(readKey(text)?.fingerprint, readKey(text.replace(/=$/, ''))?.fingerprint)
  const urlForm = text.replaceAll('+', '-').replaceAll('/', '_')
  assert.equal(readKey(urlForm)?.fingerprint, readKey(text)?.fingerprint)
  for (const other of ['', 'secret', text.slice(1), `${text}A`, `A${text}`, text.replace(/.=$/, 'B='), ` ${text}`])
    assert.equal(readKey(other), undefined, other)
})
