import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { DescriptorFile } from '@windlass/shared/model/descriptor.ts'
import { DeployError } from '../../workflows/deploy-error.ts'
import { readDescriptor } from '../../workflows/descriptor.ts'

function refusal(text: string): DeployError {
  try {
    readDescriptor(text)
  } catch (error) {
    if (error instanceof DeployError) return error
    throw error
  }
  throw new Error(`was accepted: ${text}`)
}

test('a slug is enough, everything else has a default', () => {
  const descriptor = readDescriptor('{ "slug": "a" }')
  assert.deepEqual(descriptor, {
    slug: 'a',
    name: 'a',
    description: '',
    entry: 'index.ts',
    pool: 'default',
    labels: [],
    slots: 1,
    timeoutMs: 3_600_000,
    wallTimeoutMs: null,
    queueTimeoutMs: null,
    cancelGraceMs: 10_000,
    retries: {
      crash: 3,
      fence: 20,
      onCrash: 'keep',
      onLost: 'restart',
      error: { max: 0, factor: 2, delayMs: 10_000, maxDelayMs: 600_000 },
    },
    concurrency: null,
    throttle: null,
    debounce: null,
    schedules: [],
    notifications: [],
    budget: null,
    webhook: null,
    connections: [],
    workspace: { persist: false },
    process: 'fresh',
  })
})

test('comments, trailing commas and a byte order mark are welcome', () => {
  const descriptor = readDescriptor('\uFEFF{ // who\n "slug": "a", /* how long */ "timeout": "90s",\n}')
  assert.equal(descriptor.timeoutMs, 90_000)
})

test('every key of the contract is taken', () => {
  const descriptor = readDescriptor(`{
    "$schema": "https://example.com/schemas/workflow.json",
    "slug": "a", "name": "A", "description": "Does it.", "entry": "src/main.ts", "pool": "big", "labels": ["gpu", "arch:arm64"],
    "timeout": 60000, "cancelGrace": "1m", "retries": { "crash": 0, "error": { "max": 3, "delay": "1s", "maxDelay": "500ms" }, "onCrash": "fresh" },
    "concurrency": { "limit": 2, "key": "input.customer.id" },
    "schedules": [{ "cron": "0 9 * * 1-5", "timezone": "Europe/Zurich", "input": { "deep": [1] } }, { "rate": "5m" }, { "at": "2027-01-31T09:00:00+01:00" }],
    "notifications": [{ "on": ["failed", "failed", "budget"], "email": "a@example.com" }, { "webhook": "https://example.com/x" }],
    "budget": { "tokens": 1000, "usd": 1.25, "onBreach": "cancel" },
    "webhook": { "input": "request", "environment": "staging", "dedupe": { "header": "X-Id" } },
    "connections": [{ "connection": "github", "events": ["pull_request.*"], "filter": { "repository.name": ["a", "b"] } }],
    "workspace": { "persist": true }, "process": "reuse"
  }`)
  assert.deepEqual(descriptor.retries.error, { max: 3, factor: 2, delayMs: 1000, maxDelayMs: 1000 })
  assert.deepEqual(descriptor.concurrency, { limit: 2, key: 'input.customer.id' })
  assert.deepEqual(
    descriptor.schedules.map(({ when }) => when),
    [
      { kind: 'cron', cron: '0 9 * * 1-5', timezone: 'Europe/Zurich' },
      { kind: 'rate', rateMs: 300_000, anchorAt: null },
      { kind: 'at', at: Date.UTC(2027, 0, 31, 8) },
    ],
  )
  assert.deepEqual(descriptor.notifications, [
    { on: ['failed', 'budget'], to: { email: ['a@example.com'] } },
    { on: ['failed'], to: { webhook: 'https://example.com/x' } },
  ])
  assert.deepEqual(descriptor.budget, { tokens: 1000, costMicros: 1_250_000, onBreach: 'cancel' })
})

test('a budget in dollars is what was written, and a tiny one is not none', () => {
  const microsOf = (usd: number) =>
    readDescriptor(JSON.stringify({ slug: 'a', name: 'A', budget: { usd } })).budget?.costMicros
  assert.deepEqual([4.03, 0.29, 1e-12].map(microsOf), [4_030_000, 290_000, 1])
})

test('short forms are written out', () => {
  const descriptor = readDescriptor('{ "slug": "a", "concurrency": 4, "retries": { "error": 2 } }')
  assert.deepEqual(descriptor.concurrency, { limit: 4, key: null })
  assert.equal(descriptor.retries.error.max, 2)
})

test('limits of load are written out, with durations in milliseconds', () => {
  const { concurrency, throttle, debounce } = readDescriptor(`{
    "slug": "a",
    "concurrency": [{ "limit": 10 }, { "limit": 1, "key": "input.customer.id" }],
    "throttle": { "limit": 5, "per": "1m", "key": "input.customer.id" },
    "debounce": { "wait": "30s" }
  }`)
  assert.deepEqual(concurrency, [
    { limit: 10, key: null },
    { limit: 1, key: 'input.customer.id' },
  ])
  assert.deepEqual(throttle, { limit: 5, perMs: 60_000, key: 'input.customer.id' })
  assert.deepEqual(debounce, { waitMs: 30_000, maxWaitMs: 300_000, key: null })
  const { debounce: given } = readDescriptor('{ "slug": "a", "debounce": { "wait": "1s", "maxWait": "1s" } }')
  assert.deepEqual(given, { waitMs: 1000, maxWaitMs: 1000, key: null })
})

test('a timeout is the time of execution, or three times each with its own name', () => {
  const read = (timeout: unknown) => {
    const { timeoutMs, wallTimeoutMs, queueTimeoutMs } = readDescriptor(JSON.stringify({ slug: 'a', timeout }))
    return [timeoutMs, wallTimeoutMs, queueTimeoutMs]
  }
  assert.deepEqual(read('5m'), [300_000, null, null])
  assert.deepEqual(read({ active: '2h', wall: '3d', queue: '1h' }), [7_200_000, 259_200_000, 3_600_000])
  assert.deepEqual(read({ queue: '1h' }), [3_600_000, null, 3_600_000])
  // Without one of its own the time of execution never exceeds that of the whole run.
  assert.deepEqual(read({ wall: '10m' }), [600_000, 600_000, null])
})

test('an unknown key is refused at its line with the nearest known one', () => {
  const error = refusal('{\n  "slug": "a",\n  "tiemout": "1h"\n}')
  assert.equal(error.message, 'workflow.jsonc:3:3: unknown key `tiemout`, did you mean `timeout`?')
  assert.deepEqual(error.detail, { path: 'tiemout', file: 'workflow.jsonc', line: 3, column: 3 })
})

test('an environment is refused with where it is named instead', () => {
  const { message } = refusal('{ "slug": "a", "environment": "production" }')
  assert.match(
    message,
    /^workflow\.jsonc:1:16: `environment` is no key any more: who starts a run names its environment/,
  )
})

test('an unknown key deep inside a form with alternatives is found too', () => {
  const error = refusal('{ "slug": "a", "retries": { "error": { "max": 1, "dellay": "1s" } } }')
  assert.equal(error.detail.path, 'retries.error.dellay')
  assert.match(error.message, /did you mean `delay`\?/)
})

test('a key that resembles nothing lists what is known', () => {
  assert.match(
    refusal('{ "slug": "a", "workspace": { "zzz": 1 } }').message,
    /unknown key `zzz`: known here are `persist`/,
  )
})

const wrong: [text: string, path: string, message: RegExp][] = [
  ['{}', 'slug', /`slug` is required/],
  ['{ "slug": 5 }', 'slug', /must be a string/],
  ['{ "slug": "A b" }', 'slug', /lower-case/],
  [`{ "slug": "${'a'.repeat(64)}" }`, 'slug', /63/],
  ['{ "slug": "a", "timeout": "soon" }', 'timeout', /write "30s", "5m", "1h", "2d"/],
  ['{ "slug": "a", "timeout": "8d" }', 'timeout', /between 1s and 7d/],
  ['{ "slug": "a", "timeout": { "wal": "1h" } }', 'timeout.wal', /did you mean `wall`/],
  ['{ "slug": "a", "timeout": { "wall": "400d" } }', 'timeout.wall', /between 1s and 366d/],
  ['{ "slug": "a", "concurrency": { "limit": 1, "onLimit": "queue" } }', 'concurrency.onLimit', /unknown key/],
  ['{ "slug": "a", "concurrency": [] }', 'concurrency', /at least 1/],
  ['{ "slug": "a", "concurrency": [{ "limit": 0 }] }', 'concurrency[0].limit', /at least 1/],
  ['{ "slug": "a", "concurrency": [{ "limit": 2 }, { "limit": 1 }] }', 'concurrency', /two without one/],
  ['{ "slug": "a", "throttle": { "limit": 1 } }', 'throttle.per', /required|duration/],
  ['{ "slug": "a", "throttle": { "limit": 1, "per": "40d" } }', 'throttle.per', /between 1s and 31d/],
  ['{ "slug": "a", "throttle": { "limit": 1, "per": "1m", "key": "customer" } }', 'throttle.key', /input\.customerId/],
  ['{ "slug": "a", "debounce": { "wait": "10m", "maxWait": "1m" } }', 'debounce.maxWait', /shorter than `wait`/],
  ['{ "slug": "a", "debounce": { "delay": "10m" } }', 'debounce.wait', /required|duration/],
  ['{ "slug": "a", "cancelGrace": "6m" }', 'cancelGrace', /between 0s and 5m/],
  ['{ "slug": "a", "process": "warm" }', 'process', /"fresh" or "reuse"/],
  [
    '{ "slug": "a", "schedules": [{ "rate": "1h" }, { "cron": "* * * * *", "rate": "1h" }] }',
    'schedules[1]',
    /exactly one of/,
  ],
  ['{ "slug": "a", "schedules": [{ "cron": "* * *" }] }', 'schedules[0].cron', /five fields/],
  ['{ "slug": "a", "schedules": [{ "cron": "* * * * *", "timezone": "Mars" }] }', 'schedules[0].timezone', /time zone/],
  [
    '{ "slug": "a", "schedules": [{ "cron": "0 9 * * FRI-MON" }] }',
    'schedules[0].cron',
    /day of week `FRI-MON`.*write `FRI-SUN,MON`/,
  ],
  ['{ "slug": "a", "schedules": [{ "cron": "0 0 31 2 *" }] }', 'schedules[0].cron', /next eight years/],
  [
    '{ "slug": "a", "schedules": [{ "cron": "* 1 * 3 7L", "timezone": "Europe/London" }] }',
    'schedules[0].cron',
    /clocks of Europe\/London leave out/,
  ],
  [
    '{ "slug": "a", "schedules": [{ "cron": "* * * * *", "timezone": "europe/zurch" }] }',
    'schedules[0].timezone',
    /did you mean `Europe\/Zurich`/,
  ],
  ['{ "slug": "a", "schedules": [{ "cron": "* * * * *", "anchorAt": 1 }] }', 'schedules[0].anchorAt', /`rate` only/],
  ['{ "slug": "a", "schedules": [{ "rate": "1h", "jitter": "2h" }] }', 'schedules[0].jitter', /between 0s and 1h/],
  [
    `{ "slug": "a", "schedules": [{ "rate": "1h", "input": "${'x'.repeat(65_536)}" }] }`,
    'schedules[0].input',
    /more than 64 KiB/,
  ],
  ['{ "slug": "a", "schedules": [{ "rate": "1h", "overlap": "wait" }] }', 'schedules[0].overlap', /allow/],
  ['{ "slug": "a", "notifications": [{ "on": ["failed"] }] }', 'notifications[0]', /exactly one of `email`, `webhook`/],
  ['{ "slug": "a", "budget": {} }', 'budget', /`tokens`, `usd` or both/],
  ['{ "slug": "a", "labels": ["x", "x"] }', 'labels', /twice/],
  ['{ "slug": "a", "slug": "b" }', 'slug', /given twice/],
  ['{ "slug": "a", "__proto__": {} }', '__proto__', /not a key that can be used/],
]

for (const [text, path, message] of wrong) {
  test(`${text.slice(0, 100)} is refused at ${path}`, () => {
    const error = refusal(text)
    assert.equal(error.detail.path, path)
    assert.match(error.message, message)
  })
}

test('what is not JSON is refused with its place', () => {
  const error = refusal('{\n  "slug": "a"\n  "name": "b"\n}')
  assert.deepEqual(error.detail, { path: 'files/workflow.jsonc', file: 'workflow.jsonc', line: 3, column: 3 })
  assert.match(error.message, /comma expected/)
})

test('an empty file, a list and brackets without end are refused plainly', () => {
  assert.match(refusal(' ').message, /is empty/)
  assert.match(refusal('[]').message, /must be an object/)
  assert.match(refusal(`{"slug":${'['.repeat(100_000)}`).message, /nested deeper/)
})

test('the schema of the file can be published for editors', () => {
  const schema = z.toJSONSchema(DescriptorFile, { io: 'input' })
  assert.deepEqual(schema.required, ['slug'])
  assert.equal(schema.additionalProperties, false)
})

test('what takes long to read or to show is refused where it begins to be too much', () => {
  const values = refusal(`{ "slug": "a", "schedules": [{ "rate": "1h", "input": [\n${'1,'.repeat(20_000)}1] }] }`)
  assert.match(values.message, /^workflow\.jsonc:2:\d+: has more than 20000 keys, values and marks; let the program/)
  const minutes = [...Array(60).keys()].join(',')
  const cron = (minute: string) => `{ "slug": "a", "schedules": [{ "cron": "${minute} * * * *" }] }`
  assert.equal(readDescriptor(cron(minutes)).schedules.length, 1)
  assert.match(refusal(cron(`${minutes},${minutes}`)).message, /`schedules\[0\]\.cron` must be at most 200 characters/)
})
