import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { AuditEntry } from '@windlass/shared/model/audit.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { record } from '../../audit/record.ts'
import * as store from '../../audit/store.ts'
import { mintApiKey } from '../_kit/credentials.ts'
import { rowsRead } from '../_kit/rows-read.ts'
import { sqlId } from '../_kit/sql-ids.ts'
import { anOrg, aCoordinator, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator
/** Of the entries below, oldest first. */
let entries: AuditEntry[]

const CHANGES = [
  { actor: 'key_a', action: 'keys.revoke', target: 'key_z' },
  { actor: 'key_a', action: 'runs.cancel', target: 'run_1' },
  { actor: 'key_b', action: 'runs.cancel', target: 'run_2' },
  { actor: 'key_b', action: 'runs.retry', target: 'run_1' },
  { actor: 'ada@host', action: 'keys.create', target: 'key_y' },
  { actor: 'ada@host', action: 'runsome.thing', target: 'run_1' },
  { actor: 'key_a', action: 'pools.createToken', target: 'rtok_1' },
]

async function log(orgId: TestCoordinator['orgId'], { actor, action, target }: (typeof CHANGES)[number]) {
  const by = { kind: 'operator', id: actor, name: 'Ada', orgId, via: 'admin', requestId: null } as const
  const facts = { '\0': '\ud83d', constructor: { __proto__: null, tags: ['a'] } }
  await record(c.db, by, { action, target: { type: 'thing', id: target }, before: facts })
}

before(async () => {
  c = await aCoordinator()
  for (const change of CHANGES) await log(c.orgId, change)
  entries = (await list()).auditEntries.toReversed()
})
after(() => c.stop())

type Query = Omit<ArgsOf<typeof ops.audit.list>, 'org'>

const list = (query: Query = {}) => c.call(ops.audit.list, { org: c.org, ...query })
/** Which of the entries, newest first. */
const found = async (query: Query) =>
  (await list(query)).auditEntries.map((entry) => entries.findIndex(({ id }) => id === entry.id))

test('what was written comes back, newest first', () => {
  assert.deepEqual(
    entries.map(({ actor, action, target }) => ({ actor: actor.id, action, target: target.id })),
    CHANGES,
  )
  const { id, createdAt, ...rest } = entries[0]!
  assert.match(id, /^aud_/)
  assert.ok(Math.abs(createdAt - Date.now()) < 60_000)
  assert.deepEqual(rest, {
    org: c.org,
    actor: { kind: 'operator', id: 'key_a', name: 'Ada' },
    via: 'admin',
    requestId: null,
    action: 'keys.revoke',
    target: { type: 'thing', id: 'key_z', name: null },
    before: { '\0': '\ud83d', constructor: { tags: ['a'] } },
    after: null,
  })
})

test('each filter leaves what fits, alone and together', async () => {
  assert.deepEqual(await found({ actor: 'key_a' }), [6, 1, 0])
  assert.deepEqual(await found({ target: 'run_1' }), [5, 3, 1])
  assert.deepEqual(await found({ action: ['runs.cancel'] }), [2, 1])
  assert.deepEqual(await found({ action: ['runs.*'] }), [3, 2, 1])
  assert.deepEqual(await found({ action: ['runs.cancel', 'runs.*', 'runs.cancel'] }), [3, 2, 1])
  assert.deepEqual(await found({ action: ['keys.create', 'runs.*', 'pools.createToken'] }), [6, 4, 3, 2, 1])
  assert.deepEqual(await found({ action: ['keys.create', 'runs.retry'], target: 'run_1' }), [3])
  assert.deepEqual(await found({ action: ['runs.*'], actor: 'key_b', target: 'run_2' }), [2])
  assert.deepEqual(await found({ action: ['nothing.here'] }), [])
  assert.deepEqual(await found({ actor: "' or true --" }), [])
})

test('times bound a list, both without their own moment, however far away they are', async () => {
  const between = await found({ createdAfter: entries[2]!.createdAt - 1, createdBefore: entries[4]!.createdAt + 1 })
  for (const i of [2, 3, 4]) assert.ok(between.includes(i))
  assert.deepEqual(
    between,
    entries
      .flatMap(({ createdAt: at }, i) => (at >= entries[2]!.createdAt && at <= entries[4]!.createdAt ? [i] : []))
      .toReversed(),
  )
  assert.ok(!(await found({ createdBefore: entries[3]!.createdAt })).includes(3))
  assert.ok(!(await found({ createdAfter: entries[3]!.createdAt })).includes(3))
  const HOURS = 3 * 3_600_000
  assert.deepEqual(await found({ createdAfter: Date.now() + HOURS }), [])
  assert.deepEqual(await found({ createdBefore: Date.now() - HOURS }), [])
  for (const far of [Number.MAX_SAFE_INTEGER, 2 ** 48, 8.64e15]) {
    assert.deepEqual(await found({ createdAfter: far }), [])
    assert.equal((await found({ createdBefore: far, createdAfter: 0 })).length, CHANGES.length)
  }
  assert.deepEqual(await found({ createdBefore: 0 }), [])
})

test('pages leave nothing out and repeat nothing, whatever is filtered', async () => {
  for (const query of [{}, { action: ['runs.*', 'keys.*'] }, { actor: 'key_a' }]) {
    const all = await found(query)
    const paged: number[] = []
    let cursor: string | undefined
    do {
      paged.push(...(await found({ ...query, limit: 2, cursor })))
      cursor = (await list({ ...query, limit: 2, cursor })).nextCursor ?? undefined
    } while (cursor)
    assert.deepEqual(paged, all)
    assert.equal((await list({ ...query, limit: all.length })).nextCursor, null)
  }
})

test('a page has 1 MiB at most, and the pages have all entries', async () => {
  const org = await anOrg(c)
  const by = { kind: 'operator', id: 'large', name: 'Ada', orgId: org.id, via: 'admin', requestId: null } as const
  for (let i = 0; i < 7; i++) {
    const facts = { before: { text: 'x'.repeat(200_000) }, after: { text: 'y'.repeat(200_000) } }
    await record(c.db, by, { action: 'large.write', target: { type: 'thing', id: `${i}` }, ...facts })
  }
  for (const filter of [{ actor: 'large' }, { action: ['large.*'] }]) {
    const pages: string[][] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const ask = { org: org.slug, ...filter, limit: 100, ...(cursor && { cursor }) }
      const page = await c.call(ops.audit.list, ask, { apiKey: org.apiKey })
      pages.push(page.auditEntries.map(({ target }) => target.id))
      cursor = page.nextCursor
    }
    assert.deepEqual(pages, [['6', '5'], ['4', '3'], ['2', '1'], ['0']])
  }
})

test('what cannot be meant is refused with its path and the form', async () => {
  for (const action of ['keys', 'keys.', '*', '*.*', 'keys.*.*', '.revoke', 'keys revoke', 'Keys.revoke', "keys.'"]) {
    await assert.rejects(list({ action: ['runs.*', action] }), (error: Error) => {
      refusal('VALIDATION_FAILED', 'action[1]')(error)
      assert.match(error.message, /`keys\.revoke`.*`keys\.\*`/)
      return true
    })
  }
  for (const cursor of ['x', Buffer.from(newId('run')).toString('base64url')])
    await assert.rejects(list({ cursor }), refusal('VALIDATION_FAILED', 'cursor'))
  for (const query of [
    'actor=%00',
    'target=a%00b',
    'createdAfter=-1',
    'createdAfter=x',
    'createdBefore=1.5',
    'limit=101',
    'who=me',
  ])
    assert.equal((await rawCall(c, 'GET', `/v1/orgs/${c.org}/audit?${query}`)).status, 400, query)
})

test('only the own log is shown, and only to who may read it', async () => {
  const other = await anOrg(c)
  await log(other.id, CHANGES[0]!)
  const seen = await c.call(ops.audit.list, { org: other.slug }, { apiKey: other.apiKey })
  assert.deepEqual(
    seen.auditEntries.map(({ org, action }) => [org, action]),
    [[other.slug, 'keys.revoke']],
  )
  assert.equal((await list()).auditEntries.length, CHANGES.length)
  await assert.rejects(c.call(ops.audit.list, { org: c.org }, { apiKey: other.apiKey }), refusal('NOT_FOUND'))

  const read = async (ask: Pick<Parameters<typeof mintApiKey>[1], 'role' | 'scopes'>) => {
    const { key } = await mintApiKey(c.db, { orgId: c.orgId, name: 'reader', ...ask })
    return c.call(ops.audit.list, { org: c.org }, { apiKey: key })
  }
  await assert.rejects(read({ role: 'member' }), refusal('FORBIDDEN'))
  await assert.rejects(read({ role: 'admin', scopes: ['run:read'] }), refusal('FORBIDDEN'))
  assert.equal((await read({ role: 'admin', scopes: ['audit_log:read'] })).auditEntries.length, CHANGES.length)
})

test('a page of 100,000 entries is found by an index, whatever is asked for', async () => {
  const { id } = await anOrg(c)
  const HOUR_MS = 3_600_000
  const start = Date.now() - 1000 * HOUR_MS
  const at = c.db`${start}::bigint + i * 36000::bigint`
  // One in a thousand is by somebody else, and one in ten thousand is of another group.
  await c.db`
    insert into audit_log (id, org_id, at, actor_kind, actor_id, actor_name, via, action, target_type, target_id)
    select ${sqlId(c.db, 'aud', at, c.db`i`)}, ${id}, to_timestamp((${at}) / 1000.0), 'key',
           case when i % 1000 = 7 then 'key_rare' else 'key_common' end, 'x', 'rest',
           case when i % 10000 = 7 then 'keys.revoke' else 'runs.cancel' end, 'run', 'run_' || i
    from generate_series(1, 100000) as i`
  await c.db`analyze audit_log`
  const rowsOf = (filter: Partial<store.AuditFilter>) =>
    rowsRead(c.db, 'audit_log', (db) => store.list(db, { orgId: id, limit: 51, ...filter }))
  const keys = { exact: ['keys.revoke'], wholeGroups: [], groups: ['keys'] }
  const both = { exact: ['keys.revoke'], wholeGroups: ['runs'], groups: ['keys', 'runs'] }
  assert.deepEqual(await rowsOf({}), { found: 51, read: 51 })
  assert.deepEqual(await rowsOf({ orgId: c.orgId }), { found: CHANGES.length, read: CHANGES.length })
  assert.deepEqual(await rowsOf({ actor: 'key_rare' }), { found: 51, read: 51 })
  assert.deepEqual(await rowsOf({ target: 'run_5' }), { found: 1, read: 1 })
  assert.deepEqual(await rowsOf({ actions: keys }), { found: 10, read: 10 })
  assert.deepEqual(await rowsOf({ actions: both }), { found: 51, read: 61 })
  assert.deepEqual(await rowsOf({ before: await idOf(id, 30_000) }), { found: 51, read: 51 })
  // A few minutes of long ago: what is read besides is an hour on either side, for the sake of clocks that differ.
  const then = start + 500 * HOUR_MS
  const minutes = await rowsOf({ createdAfter: then - 1, createdBefore: then + 180_000 })
  assert.equal(minutes.found, 5)
  assert.ok(minutes.read <= 210, `${minutes.read} rows were read`)
})

async function idOf(orgId: string, n: number): Promise<string> {
  const [row] = await c.db`select id from audit_log where org_id = ${orgId} and target_id = ${`run_${n}`}`
  return String(row!['id'])
}
