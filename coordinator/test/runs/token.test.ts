import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { decodeProtectedHeader, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { newId } from '@windlass/shared/ids.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { createLog } from '@windlass/shared/log.ts'
import type { Database } from '../../db/client.ts'
import { openRunTokens } from '../../runs/token.ts'
import { cleanTokenKeys } from '../../runs/token-keys.ts'
import { testDatabase } from '../_kit/database.ts'
import { untilPolled } from '../_kit/until.ts'

const log = createLog({ part: 'test' }, 'error')
const DAY_MS = 24 * 60 * 60 * 1000
const run = { runId: newId('run'), orgId: newId('org'), runnerId: newId('rnr'), epoch: 3 }
const REFUSED = { code: 'UNAUTHENTICATED' }

let database: Database

before(async () => {
  database = await testDatabase()
})
after(() => database.close())

const open = (now?: () => number) => openRunTokens({ db: database.db, log, now, databaseClock: Date })
/** A token that is whole in form, and signed with nothing. */
const decoy = (kid: string) =>
  `${Buffer.from(JSON.stringify({ alg: 'EdDSA', kid })).toString('base64url')}.e30.${'A'.repeat(86)}`
const kidOf = (token: string) => decodeProtectedHeader(token).kid

test('whoever reads the database can sign no run token', async () => {
  const tokens = await open()
  assert.equal((await tokens.verify(await tokens.mint(run))).runId, run.runId)
  const rows = await database.db<{ row: object }[]>`select to_jsonb(s) as row from signing_keys s`
  assert.ok(rows.length > 0)
  for (const { row } of rows) assert.doesNotMatch(JSON.stringify(row), /"d":/, 'the private half of a key')
})

test('a token that is shown again is not checked again, and one that was refused is', async () => {
  const tokens = await open()
  const token = await tokens.mint(run)
  assert.equal(await tokens.verify(token), await tokens.verify(token))
  const forged = `${token.slice(0, -4)}AAAA`
  for (let n = 0; n < 2; n++) await assert.rejects(tokens.verify(forged), REFUSED)
})

test('coordinators check what another has signed, also one that has ended', async () => {
  const [one, other] = await Promise.all([open(), open()])
  const token = await one.mint(run)
  assert.notEqual(kidOf(token), kidOf(await other.mint(run)))
  assert.deepEqual(await other.verify(token), { kind: 'program', ...run })
  assert.deepEqual(await (await open()).verify(token), { kind: 'program', ...run })
})

test('a coordinator whose clock is wrong signs what the others take, and takes what they sign', async (t) => {
  const real = Date.now
  const common = { db: database.db, log, databaseClock: { now: real } }
  for (const aheadMs of [-2 * DAY_MS, 2 * DAY_MS]) {
    const others = await (await openRunTokens(common)).mint(run)
    t.mock.method(Date, 'now', () => real() + aheadMs)
    const tokens = await openRunTokens(common)
    const own = await tokens.mint(run)
    assert.equal((await tokens.verify(others)).runId, run.runId)
    t.mock.restoreAll()
    assert.equal((await (await openRunTokens(common)).verify(own)).runId, run.runId)
  }
  const later = await openRunTokens({ ...common, databaseClock: { now: () => real() + DAY_MS } })
  await assert.rejects(later.verify(await (await open()).mint(run)), REFUSED, 'it goes by the clock of the database')
})

test('after a day another key signs, and what the former has signed is still good', async () => {
  let now = 0
  const tokens = await open(() => now)
  const former = await tokens.mint(run)
  now = DAY_MS
  // The former key goes on until the next one is committed.
  assert.equal(kidOf(await tokens.mint(run)), kidOf(former))
  await untilPolled('another key signs', async () => kidOf(await tokens.mint(run)) !== kidOf(former))
  const [ours, theirs] = await Promise.all([tokens.verify(former), (await open()).verify(former)])
  assert.deepEqual([ours.runId, theirs.runId], [run.runId, run.runId])
})

test('a machine that has slept signs with a key that the others know', async (t) => {
  const tokens = await open()
  const former = await tokens.mint(run)
  await database.db`delete from signing_keys where kid = ${kidOf(former)!}`
  const asleepMs = 2 * DAY_MS + 3_600_000
  const awake = Date.now()
  t.mock.method(Date, 'now', () => awake + asleepMs)
  const token = await tokens.mint(run)
  assert.notEqual(kidOf(token), kidOf(former))
  t.mock.restoreAll()
  const verified = await (await open()).verify(token)
  assert.equal(verified.runId, run.runId)
})

test('a coordinator whose key is no longer among those of all makes itself a new one', async () => {
  const tokens = await open()
  const former = await tokens.mint(run)
  await database.db`delete from signing_keys where kid = ${kidOf(former)!}`
  await assert.rejects(tokens.verify(former), REFUSED)
  await untilPolled('another key signs', async () => kidOf(await tokens.mint(run)) !== kidOf(former))
  assert.equal((await tokens.verify(await tokens.mint(run))).runId, run.runId)
})

test('a token of any other key is refused, whatever it says of itself', async () => {
  const tokens = await open()
  const kid = kidOf(await tokens.mint(run))!
  const foreign = await generateKeyPair('EdDSA', { crv: 'Ed25519' })
  const [{ publicJwk }] = await database.db<[{ publicJwk: JWK }]>`
    select public_jwk from signing_keys where kid = ${kid}`
  const signed = (header: { alg: string; kid?: string; jwk?: JWK }, key: Parameters<SignJWT['sign']>[0]) =>
    new SignJWT({ org: run.orgId, epoch: 3, runner: run.runnerId })
      .setProtectedHeader(header)
      .setSubject(run.runId)
      .setAudience('runner')
      .setIssuedAt()
      .setExpirationTime('10 minutes')
      .sign(key)
  const jwk = await exportJWK(foreign.publicKey)
  const none = `${Buffer.from(JSON.stringify({ alg: 'none', kid })).toString('base64url')}.e30.`
  const forged = [
    await signed({ alg: 'EdDSA', kid }, foreign.privateKey),
    await signed({ alg: 'EdDSA' }, foreign.privateKey),
    await signed({ alg: 'EdDSA', kid: 'x'.repeat(43), jwk }, foreign.privateKey),
    await signed({ alg: 'EdDSA', kid: `${kid}'--` }, foreign.privateKey),
    // The public half taken for a password.
    await signed({ alg: 'HS256', kid }, Buffer.from(JSON.stringify(publicJwk))),
    none,
    'no token',
    '',
  ]
  for (const token of forged) await assert.rejects(tokens.verify(token), REFUSED, token)
})

test('tokens with keys of nobody do not become queries, and keep nobody else waiting', async (t) => {
  const tokens = await open()
  const token = await tokens.mint(run)
  await tokens.verify(token)
  let reads = 0
  t.after(onMoment(({ name }) => void (name === 'tokenKeys.read' && reads++)))
  const foreign = Array.from({ length: 500 }, (_, n) => decoy(String(n).padStart(43, 'x')))
  const refused = await Promise.allSettled(foreign.map((each) => tokens.verify(each)))
  assert.ok(refused.every(({ status }) => status === 'rejected'))
  assert.equal(reads, 1)
  assert.equal((await tokens.verify(token)).runId, run.runId)
})

test('keys that nobody signs with any more are removed', async () => {
  const { db } = database
  const tokens = await open()
  const kid = kidOf(await tokens.mint(run))!
  await db`update signing_keys set expires_at = now() - interval '1 second' where kid = ${kid}`
  assert.equal(await cleanTokenKeys({ db }), 1)
  await assert.rejects(tokens.verify(await tokens.mint(run)), REFUSED)
})

test('a database that is away is told as such, and is no fault of the token', async () => {
  const away = await testDatabase()
  const tokens = await openRunTokens({ db: away.db, log, databaseClock: Date })
  const token = await (await open()).mint(run)
  await away.close()
  await assert.rejects(tokens.verify(token), (error: Error & { code?: string }) => error.code !== REFUSED.code)
})
