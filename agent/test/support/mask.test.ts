import assert from 'node:assert/strict'
import { test } from 'node:test'
import { masked } from '../../support/mask.ts'

const CREDENTIALS = [
  'wlr_4Q9vXk2mT7cBz1RfY8nHs6LdW0pJ3gKaE5uVxCiZ',
  'wl_abcdefgh12345678',
  'wls_abcdefgh12345678',
  'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJybnIifQ.c2lnbmF0dXJl',
  'hunter2hunter2',
]

test('what looks like a credential is masked wherever it stands, and the rest stays', () => {
  const text = [
    `token ${CREDENTIALS[0]}, key ${CREDENTIALS[1]}, session ${CREDENTIALS[2]}`,
    `authorization: Bearer ${CREDENTIALS[3]}`,
    `{"privateKey":{"kty":"OKP","d":"${CREDENTIALS[4]}","x":"public"}}`,
    `proxy http://user:${CREDENTIALS[4]}@proxy.example.org:3128`,
    `-----BEGIN PRIVATE KEY-----\n${CREDENTIALS[4]}\n-----END PRIVATE KEY-----`,
    'runner rnr_01m8r4v6x2k9p3t7w1y5b8d0fh did run_01m8r4v6x2k9p3t7w1y5b8d0fh',
  ].join('\n')
  const result = masked(text)
  for (const credential of CREDENTIALS) assert.ok(!result.includes(credential), credential)
  assert.match(result, /rnr_01m8r4v6x2k9p3t7w1y5b8d0fh did run_01m8r4v6x2k9p3t7w1y5b8d0fh$/)
  assert.match(result, /"x":"public"/)
  assert.match(result, /@proxy\.example\.org:3128/)
})
