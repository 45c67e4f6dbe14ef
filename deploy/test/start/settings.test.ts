import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSettings } from '../../start/settings.ts'

for (const [name, value] of [
  ['WINDLASS_PROT', '1'],
  ['WINDLASS_PORT', 'many'],
  ['WINDLASS_AGENT_SLOT', '4'],
  ['WINDLASS_START_EXAMPEL', 'false'],
  ['WINDLASS_LEASE_MS', '1'],
] as const) {
  test(`${name}=${value} stops the start and is named`, (t) => {
    let said = ''
    t.mock.method(process.stderr, 'write', (text: string) => Boolean((said += text)))
    t.mock.method(process, 'exit', (code: number) => {
      throw new Error(`ended with ${code}`)
    })
    assert.throws(() => readSettings([], { [name]: value }), /^Error: ended with 78$/)
    assert.match(said, new RegExp(name))
  })
}

test('without a setting it starts', () => {
  assert.equal(readSettings([], {}).port, 8787)
})
