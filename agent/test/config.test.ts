import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../config.ts'
import { AgentRefusal } from '../exit-codes.ts'

const URL_ONLY = { WINDLASS_URL: 'http://localhost:8787/' }

test('an address is all that an agent needs to be told', () => {
  const config = readConfig(URL_ONLY)
  assert.equal(config.url, 'http://localhost:8787')
  assert.match(config.home, /\.windlass\/agent$/)
  assert.ok(config.slots >= 4)
})

test('numbers and lists are read from their texts', () => {
  const config = readConfig({ ...URL_ONLY, WINDLASS_AGENT_SLOTS: '3', WINDLASS_AGENT_LABELS: 'gpu,eu' })
  assert.equal(config.slots, 3)
  assert.deepEqual(config.labels, ['gpu', 'eu'])
})

test('how long and how many processes may wait can be set', () => {
  const { parking } = readConfig({ ...URL_ONLY, WINDLASS_AGENT_PARKED_MS: '0', WINDLASS_AGENT_MEMORY_RESERVE: '0.25' })
  assert.deepEqual([parking.ageMs, parking.memoryReserve, parking.wakeMs], [0, 0.25, 5000])
  assert.ok(parking.most >= 8)
})

const wrong: [string, Record<string, string>, RegExp][] = [
  ['a missing address', {}, /WINDLASS_URL is missing.*http:/],
  ['an address that is none', { WINDLASS_URL: 'localhost' }, /WINDLASS_URL: must be the http/],
  [
    'a misspelt name',
    { ...URL_ONLY, WINDLASS_AGENT_SLOT: '3' },
    /WINDLASS_AGENT_SLOT .*did you mean `WINDLASS_AGENT_SLOTS`.*Known: /,
  ],
  ['a number out of range', { ...URL_ONLY, WINDLASS_AGENT_SLOTS: '0' }, /WINDLASS_AGENT_SLOTS: /],
  ['a share over one', { ...URL_ONLY, WINDLASS_AGENT_MEMORY_RESERVE: '10' }, /WINDLASS_AGENT_MEMORY_RESERVE: /],
  ['a text for a number', { ...URL_ONLY, WINDLASS_AGENT_SLOTS: 'many' }, /WINDLASS_AGENT_SLOTS: /],
]
for (const [what, env, expected] of wrong) {
  test(`${what} is refused by name`, () => {
    assert.throws(
      () => readConfig(env),
      (error) => error instanceof AgentRefusal && error.exitCode === 78 && expected.test(error.message),
    )
  })
}

test('settings of other parts in the same environment do not disturb', () => {
  assert.doesNotThrow(() => readConfig({ ...URL_ONLY, WINDLASS_PORT: '1', WINDLASS_API_KEY: 'x' }))
})
