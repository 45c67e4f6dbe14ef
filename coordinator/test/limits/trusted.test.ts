import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../config.ts'

const read = (proxies: string) =>
  readConfig({ WINDLASS_DATABASE_URL: 'postgres://a', WINDLASS_TRUSTED_PROXIES: proxies }).trustedProxies

test('trusted proxies are addresses and networks, and anything else stops the start by its name', () => {
  assert.deepEqual(read('127.0.0.1,10.0.0.0/8,fd00::/8'), ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])
  for (const wrong of ['proxy.example.com', '10.0.0.0/33', '10.0.0.0/', 'fd00::/129', '10.0.0.0/8/8', '1.2.3'])
    assert.throws(() => read(wrong), /must be addresses or networks[^]*WINDLASS_TRUSTED_PROXIES/, wrong)
})
