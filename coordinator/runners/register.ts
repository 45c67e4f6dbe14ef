import type { Log } from '@windlass/shared/log.ts'
import { createHash } from 'node:crypto'
import { importJWK } from 'jose'
import { mintSecret } from '@windlass/shared/api-key.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type PoolId, type PoolRef, type RunnerId } from '@windlass/shared/ids.ts'
import type { Db } from '../db/client.ts'
import type { Callers } from '../accounts/callers.ts'
import type { Acting } from '../actor.ts'
import { type Author, type Change, record } from '../audit/record.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import { networkOf } from '../limits/strangers.ts'
import { noCredential } from '../stay.ts'
import * as store from './store.ts'

const hashOf = (token: string) => createHash('sha256').update(token).digest()

/** What a reusable token serves for when nobody says: a fleet that is set up in one go. */
const REUSABLE_USES = 100

/** Of an org. A fleet of machines that register at each start, and are never deregistered, would grow without end. */
const MOST_RUNNERS = 20_000

/** A token by which agents join a pool. Only its hash is kept. It ends when the credential that made it is revoked. */
export async function mintRegistrationToken(
  deps: { db: Db; callers: Pick<Callers, 'hold'> },
  caller: Acting,
  ask: { pool: PoolRef; reusable: boolean; uses?: number | undefined; ttlMs: number },
) {
  const uses = ask.uses ?? (ask.reusable ? REUSABLE_USES : 1)
  if (uses > 1 && !ask.reusable)
    throw new Fault('VALIDATION_FAILED', { path: 'uses' }, 'More than one use wants `reusable: true`.')
  const pool = await store.findPool(deps.db, caller.orgId, ask.pool)
  if (!pool) throw new Fault('NOT_FOUND', { pool: ask.pool })
  const token = mintSecret('wlr_')
  const id = newId('rtok')
  const row = { id, poolId: pool.id, hash: hashOf(token), uses, ttlMs: ask.ttlMs, createdBy: caller.id }
  const expiresAt = await deps.db.begin(async (tx) => {
    await deps.callers.hold(tx, caller)
    const at = (await store.insertToken(tx, row)).getTime()
    const after = { pool: { id: pool.id, name: pool.name }, uses, expiresAt: at }
    await record(tx, caller, { action: 'pools.createToken', target: { type: 'registration_token', id }, after })
    return at
  })
  return { id, token, uses, expiresAt }
}

export type Registration = Omit<store.NewRunner, 'id' | 'orgId' | 'poolId' | 'registeredBy'> & { token: string }

/** A token that anybody may send, and from where. */
export interface TokenAsk {
  hash: Buffer
  network: string
}

/** The tokens, in the order in which they are asked for; undefined where there is none, or it has expired. */
export function readTokens(db: Db, asked: readonly TokenAsk[]): Promise<(store.TokenRow | undefined)[]> {
  return store.findTokens(
    db,
    asked.map(({ hash }) => hash),
  )
}

type RegisterDeps = {
  db: Db
  log: Log
  turns: { orgRegistrations: OrgTurns }
  /** Agents that ask meanwhile share the next statement, from however many networks invented tokens come. */
  tokenReads: { add(asked: TokenAsk, gone?: AbortSignal): Promise<store.TokenRow | undefined> }
}

/** Makes a runner of an agent that shows a token. Those that wait for others of their token hold no connection. */
export async function registerRunner(
  deps: RegisterDeps,
  ask: Registration,
  { requestId, address, gone }: { requestId: string; address: string; gone: AbortSignal },
): Promise<{ runner: RunnerId; org: string; pool: string; poolId: PoolId }> {
  await assertKey(ask.publicKey)
  const hash = hashOf(ask.token)
  const { id, orgId, usesLeft } = valid(await deps.tokenReads.add({ hash, network: networkOf(address) }, gone))
  // Before its turn: whoever has an old token could keep its org's agents waiting.
  if (usesLeft === 0 && !(await store.findRegistered(deps.db, id, ask.publicKey))) throw usedUp()
  // The token is looked at again by whoever spends it.
  return deps.turns.orgRegistrations.run(orgId, noCredential, () => spendToken(deps, hash, ask, requestId))
}

/**
 * The token is spent in the transaction that makes the runner. An agent that asks again with the same token and key, as
 * the answer was lost, gets the runner that it has, also when the token was used up by that.
 */
function spendToken({ db, log }: RegisterDeps, hash: Buffer, { token: _, ...about }: Registration, requestId: string) {
  return db.begin(async (tx) => {
    const found = valid(await store.lockToken(tx, hash))
    const { org, pool, poolId } = found
    const known = await store.findRegistered(tx, found.id, about.publicKey)
    if (known) return { runner: known, org, pool, poolId }
    if (found.usesLeft === 0) throw usedUp()
    if ((await store.countRunners(tx, found.orgId, MOST_RUNNERS)) >= MOST_RUNNERS) throw tooMany()
    const runner = newId('rnr')
    await store.useToken(tx, hash)
    await store.insertRunner(tx, { ...about, id: runner, orgId: found.orgId, poolId, registeredBy: found.id })
    await record(tx, authorOf(found, requestId), registered(runner, about, found))
    log('runner.registered', { runner, pool, runnerName: about.name })
    return { runner, org, pool, poolId }
  })
}

function valid(found: store.TokenRow | undefined): store.TokenRow {
  if (!found)
    throw new Fault(
      'UNAUTHENTICATED',
      { path: 'token' },
      'The registration token is unknown, has expired or was revoked. Mint a new one: `windlass pools token <pool>`.',
    )
  return found
}

const usedUp = () => new Fault('REGISTRATION_TOKEN_USED', { path: 'token' })

function tooMany(): Fault {
  const advice = 'Deregister those that are gone: `windlass runners list --status offline` shows them.'
  return new Fault('CONFLICT', { limit: MOST_RUNNERS }, `The org may have ${MOST_RUNNERS} runners. ${advice}`)
}

const authorOf = ({ id, orgId, pool }: store.TokenRow, requestId: string): Author => {
  return { kind: 'token', id, name: `registration token of the pool ${pool}`, orgId, via: 'runner', requestId }
}

function registered(
  runner: RunnerId,
  { name, slots, labels }: Omit<Registration, 'token'>,
  into: store.TokenRow,
): Change {
  const target = { type: 'runner', id: runner, name }
  return { action: 'runners.register', target, after: { pool: { id: into.poolId, name: into.pool }, slots, labels } }
}

/** A key that cannot be read would fail every later request of this runner, long after anybody could tell why. */
export async function assertKey(publicKey: Record<string, string>): Promise<void> {
  try {
    await importJWK(publicKey, 'EdDSA')
  } catch {
    const message = 'publicKey.x: must be the 32 bytes of an Ed25519 public key in base64url.'
    throw new Fault('VALIDATION_FAILED', { path: 'publicKey.x' }, message)
  }
}

/** Forgets tokens that can serve nobody any more. */
export function cleanTokens(deps: { db: Db }): Promise<number> {
  return store.deleteDeadTokens(deps.db)
}
