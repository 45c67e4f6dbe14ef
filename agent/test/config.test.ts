import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig, resolveSettings, watchInForce } from '../config.ts'
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
  [
    'more parked processes than a coordinator hears of',
    { ...URL_ONLY, WINDLASS_AGENT_PARKED_MOST: '14337' },
    /WINDLASS_AGENT_PARKED_MOST: .*14336/,
  ],
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

test('flags count more than the environment, that more than the file, and each setting says who said it', () => {
  const config = readConfig(
    { ...URL_ONLY, WINDLASS_AGENT_NAME: 'of-environment', WINDLASS_AGENT_SLOTS: '5', WINDLASS_AGENT_LABELS: '' },
    {
      flags: { WINDLASS_AGENT_NAME: 'of-flag' },
      file: { WINDLASS_AGENT_SLOTS: '9', WINDLASS_AGENT_LABELS: 'of,file', OTHER: 'is nothing of ours' },
    },
  )
  assert.deepEqual([config.name, config.slots, config.labels], ['of-flag', 5, ['of', 'file']])
  const origins = Object.fromEntries(resolveSettings(config).map(({ name, origin }) => [name, origin]))
  assert.equal(origins.WINDLASS_AGENT_NAME, 'flag')
  assert.equal(origins.WINDLASS_AGENT_SLOTS, 'environment')
  assert.equal(origins.WINDLASS_AGENT_LABELS, 'file')
  assert.equal(origins.WINDLASS_AGENT_WAKE_MS, 'default')
})

const POOL = { isolation: 'process', network: 'host', limits: {}, slots: 7, parkedMs: 1, drainMs: 2 } as never

test('what the pool says counts where the machine says nothing', () => {
  const quiet = readConfig(URL_ONLY)
  assert.deepEqual(watchInForce(quiet, () => POOL)(), { slots: 7, parkedMs: 1, stopMs: 2 })
  const slots = resolveSettings(quiet, POOL).find(({ name }) => name === 'WINDLASS_AGENT_SLOTS')
  assert.deepEqual([slots?.value, slots?.origin], [7, 'pool'])
  const said = readConfig({ ...URL_ONLY, WINDLASS_AGENT_SLOTS: '3', WINDLASS_AGENT_STOP_MS: '4' })
  assert.deepEqual(watchInForce(said, () => POOL)(), { slots: 3, parkedMs: 1, stopMs: 4 })
  assert.deepEqual(watchInForce(said, () => undefined)(), { slots: 3, parkedMs: 600_000, stopMs: 4 })
})

test('the registration token is in no list of settings', () => {
  const config = readConfig({ ...URL_ONLY, WINDLASS_AGENT_TOKEN: 'wlr_secret' })
  assert.doesNotMatch(JSON.stringify(resolveSettings(config)), /wlr_secret/)
})

test('the address of the health server is taken apart', () => {
  const at = (text: string) => readConfig({ ...URL_ONLY, WINDLASS_AGENT_HEALTH: text }).health
  assert.deepEqual(at('127.0.0.1:9464'), { host: '127.0.0.1', port: 9464 })
  assert.deepEqual(at('[::1]:9464'), { host: '::1', port: 9464 })
  for (const wrong of ['9464', 'localhost:', 'localhost:99999', 'http://localhost:1'])
    assert.throws(() => at(wrong), /WINDLASS_AGENT_HEALTH: /)
})
