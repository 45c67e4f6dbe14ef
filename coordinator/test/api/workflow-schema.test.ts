import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DescriptorFile } from '@windlass/shared/model/descriptor.ts'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { parse } from 'jsonc-parser'
import { workflowFileSchema } from '../../api/workflow-schema.ts'

interface Schema {
  type?: string
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  description?: string
  title?: string
  $schema?: string
  additionalProperties?: unknown
}

const schema = JSON.parse(JSON.stringify(workflowFileSchema())) as Schema

function validator() {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true })
  addFormats.default(ajv)
  ajv.addKeyword('allowTrailingCommas')
  return ajv.compile(schema)
}
const fits = validator()

test('it is a schema of draft 2020-12 with a title, and it refuses unknown keys at every level', () => {
  assert.equal(schema.$schema, 'https://json-schema.org/draft/2020-12/schema')
  assert.equal(schema.title, 'workflow.jsonc')
  for (const [path, part] of objects(schema)) assert.equal(part.additionalProperties, false, path)
})

test('every key says what it does', () => {
  let count = 0
  for (const [path, part] of objects(schema)) {
    for (const [key, value] of Object.entries(part.properties ?? {})) {
      count++
      assert.ok(value.description, `${path}.${key}`)
    }
  }
  assert.ok(count > 45, String(count))
})

/** All that has keys, but the free fields of an event filter. */
function objects(at: Schema, path = ''): [string, Schema][] {
  const inside = Object.entries(at.properties ?? {}).flatMap(([key, part]) => objects(part, `${path}.${key}`))
  const others = [...(at.anyOf ?? []), ...(at.items ? [at.items] : [])].flatMap((part) => objects(part, path))
  return [...(at.properties ? [[path, at] as [string, Schema]] : []), ...inside, ...others]
}

const EXAMPLES = join(import.meta.dirname, '../../../sdk/examples')

test('every example of the SDK fits, and names the schema', () => {
  const names = readdirSync(EXAMPLES)
  assert.ok(names.length >= 5)
  for (const name of names) {
    const file = parse(readFileSync(join(EXAMPLES, name, 'workflow.jsonc'), 'utf8')) as { $schema?: string }
    assert.ok(fits(file), `${name}: ${JSON.stringify(fits.errors)}`)
    assert.match(file.$schema ?? '', /\/schemas\/workflow\.json$/, name)
  }
})

const RIGHT: Record<string, unknown>[] = [
  { slug: 'a' },
  { slug: 'a', timeout: '5m', cancelGrace: 0 },
  { slug: 'a', timeout: { active: '5m', wall: '7d', queue: 60_000 } },
  { slug: 'a', retries: { crash: 0, error: { max: 2, delay: '1s', factor: 1.5 }, onCrash: 'fresh' } },
  { slug: 'a', retries: { error: 3 }, concurrency: { limit: 1, key: 'input.customer.id' } },
  { slug: 'a', concurrency: 2, labels: ['gpu', 'linux'], process: 'reuse', workspace: { persist: true } },
  { slug: 'a', concurrency: [{ limit: 10 }, { limit: 1, key: 'input.customer' }] },
  { slug: 'a', throttle: { limit: 10, per: '1m', key: 'input.customer' }, debounce: { wait: 5000, maxWait: '1h' } },
  { slug: 'a', schedules: [{ cron: '0 9 * * 1-5', timezone: 'Europe/Zurich', input: { deep: [1, null] } }] },
  {
    slug: 'a',
    schedules: [{ rate: '15m', enabled: false }, { at: '2027-01-31T09:00:00Z' }, { at: 1_800_000_000_000 }],
  },
  { slug: 'a', notifications: [{ email: ['a@example.com'] }, { on: ['budget'], webhook: 'https://example.com/x' }] },
  { slug: 'a', budget: { usd: 0.5, onBreach: 'cancel' } },
  { slug: 'a', connections: [{ connection: 'github', events: ['push'], filter: { ref: ['main', null] } }] },
]

const WRONG: Record<string, unknown>[] = [
  {},
  { slug: 'Not A Slug' },
  { slug: 'a', tiemout: '5m' },
  { slug: 'a', timeout: '5 minutes' },
  { slug: 'a', timeout: 1 },
  { slug: 'a', timeout: { active: '5m', total: '1h' } },
  { slug: 'a', cancelGrace: 300_001 },
  { slug: 'a', retries: 3 },
  { slug: 'a', retries: { error: { delay: '1s' } } },
  { slug: 'a', retries: { crash: 101 } },
  { slug: 'a', retries: { onCrash: 'maybe' } },
  { slug: 'a', concurrency: 0 },
  { slug: 'a', concurrency: { limit: 1, key: 'customerId' } },
  { slug: 'a', concurrency: [] },
  { slug: 'a', concurrency: [{ limit: 1, key: 'customer' }] },
  { slug: 'a', throttle: { limit: 1 } },
  { slug: 'a', throttle: { limit: 0, per: '1m' } },
  { slug: 'a', debounce: { wait: 'soon' } },
  { slug: 'a', labels: ['gpu', 'gpu'] },
  { slug: 'a', schedules: [{ input: 1 }] },
  { slug: 'a', schedules: [{ cron: '* * * * *', rate: '1h' }] },
  { slug: 'a', schedules: [{ cron: '* * * *' }] },
  { slug: 'a', schedules: [{ rate: '1h', timezone: 'UTC' }] },
  { slug: 'a', notifications: [{ on: ['failed'] }] },
  { slug: 'a', notifications: [{ email: 'a@example.com', webhook: 'https://example.com' }] },
  { slug: 'a', notifications: [{ webhook: 'ftp://example.com' }] },
  { slug: 'a', budget: {} },
  { slug: 'a', budget: { usd: 0 } },
  { slug: 'a', connections: [{ connection: 'github', events: [] }] },
  { slug: 'a', process: 'new' },
  { slug: 'a', workspace: { persist: 'yes' } },
]

test('it takes what a deploy takes', () => {
  for (const file of RIGHT) {
    assert.ok(DescriptorFile.safeParse(file).success, JSON.stringify(file))
    assert.ok(fits(file), `${JSON.stringify(file)}: ${JSON.stringify(fits.errors)}`)
  }
})

test('it refuses what a deploy refuses', () => {
  for (const file of WRONG) {
    assert.equal(DescriptorFile.safeParse(file).success, false, JSON.stringify(file))
    assert.equal(fits(file), false, JSON.stringify(file))
  }
})
