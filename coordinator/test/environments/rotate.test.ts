import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { warnOfKeys } from '../../environments/check-keys.ts'
import { addKey, ensureKeyFile, readKeyFile } from '../../environments/key-file.ts'
import { retireKeys, rotateKey, type RotateDeps } from '../../environments/rotate.ts'
import { openSecretKeys } from '../../environments/secret-keys.ts'
import { lockKeys } from '../../environments/store-sealed.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, anOrg, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'

let c: TestCoordinator
let session: string
let folder: string
let path: string

const operator = { kind: 'operator', id: 'ada@host', name: 'ada@host', via: 'admin', requestId: null } as const

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'windlass-rotate-'))
  path = join(folder, 'secret.key')
  await ensureKeyFile(path)
  c = await aCoordinatorOfItsOwn({ SECRET_KEY_FILE: path })
  session = await aSession(c.db, { orgId: c.orgId })
})
beforeEach(async () => {
  await c.db`delete from variables`
})
after(async () => {
  await c.stop()
  await rm(folder, { recursive: true })
})

/** As a process of its own has them. */
const deps = (): RotateDeps => ({
  db: c.db,
  secretKeys: openSecretKeys({ secretKey: undefined, secretKeyFile: path }, c.deps.log),
  keyFile: path,
})
const set = (name: string, value: string, at: TestCoordinator = c) =>
  at.call(ops.secrets.set, { org: c.org, name, value }, { apiKey: session })
const keys = async () => (await readKeyFile(path)).keys.map((key) => key.fingerprint)
const sealedWith = async () =>
  (await c.db<{ key: string }[]>`select distinct split_part(sealed, '.', 2) as key from variables`).map(
    ({ key }) => key,
  )

/** All secrets of the org, by their names, as a run would read them. */
async function opened(): Promise<Record<string, string>> {
  const ring = await deps().secretKeys.ring()
  const rows = await c.db<{ name: string; sealed: string }[]>`
    select name, sealed from variables where org_id = ${c.orgId} and sealed is not null order by name`
  const seat = (name: string) => ({ orgId: c.orgId, environment: '', name })
  return Object.fromEntries(rows.map(({ name, sealed }) => [name, ring.open(seat(name), sealed)]))
}

/** Many secrets, without a request for each. */
async function many(count: number): Promise<Record<string, string>> {
  const ring = await deps().secretKeys.ring()
  const names = Array.from({ length: count }, (_, i) => `S${String(i).padStart(4, '0')}`)
  const sealed = names.map((name) => ring.seal({ orgId: c.orgId, environment: '', name }, `value of ${name}`))
  await c.db`
    insert into variables (org_id, name, sealed, updated_by)
    select ${c.orgId}, name, sealed, 'test' from unnest(${names}::text[], ${sealed}::text[]) as t (name, sealed)`
  return Object.fromEntries(names.map((name) => [name, `value of ${name}`]))
}

test('a rotation seals everything with a new key, in all orgs, and says what it did', async () => {
  const { id, slug } = await anOrg(c)
  const theirs = await aSession(c.db, { orgId: id })
  await set('OURS', 'ours')
  await c.call(ops.secrets.set, { org: slug, name: 'THEIRS', value: 'theirs' }, { apiKey: theirs })
  const [old] = await keys()
  const done = await rotateKey(deps(), operator)
  const [fresh, ...others] = await keys()
  assert.deepEqual(done, { key: fresh, isNewKey: true, resealed: 2, broken: [], missing: [], unused: others })
  assert.deepEqual([others.includes(old!), await sealedWith(), await opened()], [true, [fresh], { OURS: 'ours' }])
  const [entry] = await entriesOf(c, { action: ['secrets.rotateKey'] })
  assert.deepEqual(
    [entry?.actor.kind, entry?.actor.id, entry?.via, entry?.target.id, entry?.after],
    ['operator', 'ada@host', 'admin', c.orgId, { key: fresh, secrets: 1 }],
  )
  // Who set it, and when, is not changed by it.
  const { secrets } = await c.call(ops.secrets.list, { org: c.org })
  assert.match(secrets[0]!.updatedBy, /^ses_/)
})

test('keys that nothing uses are taken out on request, and never the first', async () => {
  await set('A', 'x')
  await rotateKey(deps(), operator)
  const before = await keys()
  const { removed, kept, aside } = await retireKeys(c, operator, path)
  assert.deepEqual([removed, kept], [before.slice(1), before.slice(0, 1)])
  const taken = await readKeyFile(aside!)
  assert.deepEqual([taken.keys.map((key) => key.fingerprint), (await stat(aside!)).mode & 0o777], [removed, 0o600])
  assert.deepEqual(await retireKeys(c, operator, path), { removed: [], kept: before.slice(0, 1), aside: null })
  const entries = await entriesOf(c, { action: ['secrets.retireKeys'] })
  assert.deepEqual(
    entries.map((entry) => [entry.actor.id, entry.target.id, entry.before]),
    [['ada@host', c.orgId, { keys: removed }]],
  )
  assert.deepEqual(await opened(), { A: 'x' })
})

test('keys that were never used here are those of another database, and all of them stay', async () => {
  await set('A', 'x')
  await rotateKey(deps(), operator)
  const theirs = join(folder, 'theirs.key')
  await writeFile(theirs, `${aKeyText()}\n${aKeyText()}\n`, { mode: 0o600 })
  const other = openSecretKeys({ secretKey: undefined, secretKeyFile: theirs }, c.deps.log)
  const [, second] = (await other.ring()).fingerprints
  // Nothing of ours is sealed with the key that this puts on top.
  for (let n = 0; n < 2; n++) await rotateKey({ ...deps(), secretKeys: other, keyFile: theirs }, operator)
  const text = await readFile(theirs, 'utf8')
  await assert.rejects(retireKeys(c, operator, theirs), (error: Error) => error.message.includes(second!))
  assert.equal(await readFile(theirs, 'utf8'), text)
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith('theirs')),
    ['theirs.key'],
  )
})

test('a rotation that was killed is finished by the next, which makes no further key', async () => {
  const all = await many(450)
  // Killed between the new key and the first secret.
  const fresh = await addKey(path, await readKeyFile(path))
  const [, old] = await keys()
  assert.equal((await retireKeys(c, operator, path)).kept.includes(old!), true)
  const done = await rotateKey(deps(), operator)
  assert.deepEqual([done.key, done.isNewKey, done.resealed], [fresh.fingerprint, false, 450])
  assert.deepEqual([await sealedWith(), await opened()], [[fresh.fingerprint], all])
})

/** Puts a new key on top, and is killed before its file takes the place of the one that there is. */
function dieInRotation(): void {
  const source = `
    const { default: fs } = await import('node:fs/promises')
    const { syncBuiltinESMExports } = await import('node:module')
    fs.rename = () => process.kill(process.pid, 'SIGKILL')
    syncBuiltinESMExports()
    const { addKey, readKeyFile } = await import(${JSON.stringify(KEY_FILE)})
    await addKey(process.env.KEYS, await readKeyFile(process.env.KEYS))`
  const env = { ...process.env, KEYS: path }
  const { signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', source], { env })
  assert.equal(signal, 'SIGKILL', String(stderr))
}
const KEY_FILE = join(import.meta.dirname, '../../environments/key-file.ts')
const drafts = async () => (await readdir(folder)).filter((name) => name.endsWith('.new'))

test('what killed rotations have left is removed with the keys that are retired, and nothing else', async () => {
  const others = ['secret.key.new', 'secret.key.ours.new', 'other.key.0123456789ab.new']
  for (const name of others) await writeFile(join(folder, name), 'ours')
  const text = await readFile(path, 'utf8')
  for (let i = 0; i < 2; i++) dieInRotation()
  // The second removed what the first had left.
  assert.deepEqual([(await drafts()).length, await readFile(path, 'utf8')], [others.length + 1, text])
  await retireKeys(c, operator, path)
  assert.deepEqual((await drafts()).sort(), others.sort())
  for (const name of others) await rm(join(folder, name))
})

test('a start removes what killed rotations have left, and nothing while one is under way', async () => {
  dieInRotation()
  await c.db.begin(async (tx) => {
    await lockKeys(tx, 'to change')
    await (await c.another()).stop()
    assert.equal((await drafts()).length, 1)
  })
  await (await c.another()).stop()
  assert.deepEqual(await drafts(), [])
})

test('secrets that are set during rotations are not lost, nor sealed with a key that goes', async () => {
  const all = await many(190)
  const other = await c.another()
  const done = new AbortController()
  const rotating = (async () => {
    for (let i = 0; i < 4; i++) {
      await rotateKey(deps(), operator)
      await retireKeys(c, operator, path)
    }
  })().finally(() => done.abort())
  const written: Record<string, string> = {}
  for (let i = 0; !done.signal.aborted; i++) {
    const [one, two] = [`S${String(i % 100).padStart(4, '0')}`, `S${String(100 + (i % 50)).padStart(4, '0')}`]
    await Promise.all([set(one, `new ${i}`, c), set(two, `new ${i}`, other)])
    Object.assign(written, { [one]: `new ${i}`, [two]: `new ${i}` })
  }
  await rotating
  assert.deepEqual(await opened(), { ...all, ...written })
})

test('two rotations at once leave every secret readable, and all keys that are used', async () => {
  const all = await many(400)
  await Promise.all([rotateKey(deps(), operator), rotateKey(deps(), operator)])
  assert.deepEqual(await opened(), all)
  await rotateKey(deps(), operator)
  await retireKeys(c, operator, path)
  assert.deepEqual([await opened(), (await keys()).length], [all, 1])
})

test('a row that does not open keeps no other from being sealed anew, and is named', async () => {
  await set('BROKEN', 'x')
  await set('FINE', 'y')
  const strange = openSecretKeys({ secretKey: aKeyText(), secretKeyFile: undefined }, c.deps.log)
  const foreign = (await strange.ring()).seal({ orgId: c.orgId, environment: '', name: 'FOREIGN' }, 'z')
  await c.db`update variables set sealed = overlay(sealed placing 'AAAA' from 20) where name = 'BROKEN'`
  await c.db`insert into variables (org_id, name, sealed, updated_by) values (${c.orgId}, 'FOREIGN', ${foreign}, 'test')`
  const done = await rotateKey(deps(), operator)
  assert.deepEqual([done.resealed, done.broken.map(({ name }) => name)], [1, ['BROKEN']])
  assert.deepEqual(done.missing, [{ fingerprint: (await strange.ring()).fingerprints[0], secrets: 1 }])
  const used = await sealedWith()
  assert.ok((await retireKeys(c, operator, path)).kept.every((key) => key === done.key || used.includes(key)))
})

test('keys from the settings are only sealed anew with', async () => {
  const [old, fresh] = [aKeyText(), aKeyText()]
  const of = (secretKey: string): RotateDeps => ({
    db: c.db,
    secretKeys: openSecretKeys({ secretKey, secretKeyFile: undefined }, c.deps.log),
    keyFile: undefined,
  })
  const name = 'GIVEN'
  const orgId = newId('org')
  await c.db`insert into orgs (id, slug, name) values (${orgId}, 'given', 'Given')`
  const sealed = (await of(old).secretKeys.ring()).seal({ orgId, environment: '', name }, 'x')
  await c.db`insert into variables (org_id, name, sealed, updated_by) values (${orgId}, ${name}, ${sealed}, 'test')`
  const done = await rotateKey(of(`${fresh},${old}`), operator)
  assert.deepEqual([done.isNewKey, done.resealed, done.unused.length], [false, 1, 1])
  assert.equal((await rotateKey(of(fresh), operator)).missing.length, 0)
})

test('a coordinator says at its start which keys it lacks, and nothing when it has them all', async () => {
  await set('A', 'x')
  const said: [string, unknown][] = []
  const log = Object.assign(() => {}, c.deps.log, { warn: (name: string, facts: unknown) => said.push([name, facts]) })
  await warnOfKeys({ ...c.deps, log })
  assert.deepEqual(said, [])
  const file = await readKeyFile(path)
  const none = openSecretKeys({ secretKey: undefined, secretKeyFile: undefined }, c.deps.log)
  await warnOfKeys({ ...c.deps, log, secretKeys: none })
  assert.deepEqual(said, [['secrets.keyMissing', { key: file.keys[0]!.fingerprint, secrets: 1 }]])
})
