import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Operator } from '../accounts/operator.ts'
import { changesBy } from '../audit/read.ts'
import { record } from '../audit/record.ts'
import { type Db, isConnectionLoss, type Tx } from '../db/client.ts'
import { addKey, readKeyFile, removeDrafts, removeKeys } from './key-file.ts'
import type { SealedRow, Seat } from './row.ts'
import { sealedWith } from './sealing.ts'
import type { KeyRing, SecretKeys } from './secret-keys.ts'
import { seatOf } from './owned-secrets.ts'
import * as owned from './store-owned.ts'
import * as store from './store-sealed.ts'

export interface RotateDeps {
  db: Db
  secretKeys: SecretKeys
  /** Undefined: the keys stand in the settings themselves, where only a person changes them. */
  keyFile: string | undefined
}

export interface Rotated {
  /** By its fingerprint, the key that everything is sealed with now. */
  key: string
  /** Made by this rotation. An earlier one that had not come to its end is finished in place of beginning another. */
  isNewKey: boolean
  resealed: number
  /** Secrets that do not open: somebody has changed their rows. They have to be set again. */
  broken: Seat[]
  /** Keys that secrets are sealed with and that are not here. */
  missing: store.KeyUse[]
  /** Keys that nothing is sealed with any more. */
  unused: string[]
}

/** Secrets in one transaction: their rows are locked for some milliseconds. */
const BATCH = 200

/**
 * Seals all secrets with the first key, which with a file of keys is a new one. Coordinators go on meanwhile: they read the file again. A
 * rotation that is killed has lost nothing, as both keys are in the file; the next one goes on with it.
 */
export async function rotateKey(deps: RotateDeps, by: Operator): Promise<Rotated> {
  const isNewKey = deps.keyFile !== undefined && (await putOnTop(deps, deps.keyFile))
  const ofEnvironments = await resealAll(deps, by, VARIABLES)
  const ofOthers = await resealAll(deps, by, OWNED)
  const resealed = ofEnvironments.resealed + ofOthers.resealed
  const broken = [...ofEnvironments.broken, ...ofOthers.broken]
  const { fingerprints } = await deps.secretKeys.ring()
  const uses = await store.keysInUse(deps.db)
  const isUsed = (key: string) => uses.some((use) => use.fingerprint === key)
  return {
    key: fingerprints[0]!,
    isNewKey,
    resealed,
    broken,
    missing: uses.filter(({ fingerprint }) => !fingerprints.includes(fingerprint)),
    unused: fingerprints.slice(1).filter((key) => !isUsed(key)),
  }
}

/**
 * Nobody seals or changes keys meanwhile, unless this process stands still for so long that the server ends its
 * session, and the lock with it.
 */
async function holdingKeys<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  let isLocked = false
  try {
    return (await db.begin(async (tx) => {
      await store.lockKeys(tx, 'to change')
      isLocked = true
      return work(tx)
    })) as T
  } catch (error) {
    throw isLocked && isConnectionLoss(error) ? new Fault('UNAVAILABLE', {}, SESSION_LOST) : error
  }
}

const SESSION_LOST =
  'The session in the database was lost, as by standing still for some seconds. Another call may have gone on ' +
  'meanwhile; no key was lost. Call it again.'

/** False: there is work left over from the last time, which comes first. */
async function putOnTop({ db }: RotateDeps, path: string): Promise<boolean> {
  return holdingKeys(db, async (tx) => {
    // Whoever is sealing with the key of before has committed, and the others will see the new one.
    const file = await orFault(readKeyFile(path))
    const others = file.keys.slice(1).map((key) => key.fingerprint)
    const uses = await store.keysInUse(tx)
    if (uses.some(({ fingerprint }) => others.includes(fingerprint))) return false
    await orFault(addKey(path, file, () => store.lockKeys(tx, 'to change')))
    return true
  })
}

/** A table of sealed values. */
interface Table<R extends { orgId: Seat['orgId']; sealed: string }> {
  seatOf(row: R): Seat
  lockSealedWith(tx: Tx, fingerprints: readonly string[], page: { after: R | undefined; limit: number }): Promise<R[]>
  reseal(tx: Tx, rows: readonly R[]): Promise<void>
}

const VARIABLES: Table<SealedRow> = {
  ...store,
  seatOf: ({ orgId, environment, name }) => ({ orgId, environment, name }),
}
const OWNED: Table<owned.OwnedRow> = { ...owned, seatOf }

interface Resealed {
  resealed: number
  broken: Seat[]
}

async function resealAll<R extends { orgId: Seat['orgId']; sealed: string }>(
  deps: RotateDeps,
  by: Operator,
  table: Table<R>,
): Promise<Resealed> {
  let resealed = 0
  const broken: Seat[] = []
  for (let after: R | undefined; ;) {
    const batch = await resealSome(deps, by, { table, after })
    resealed += batch.resealed
    broken.push(...batch.broken)
    if (!batch.last) return { resealed, broken }
    after = batch.last
  }
}

async function resealSome<R extends { orgId: Seat['orgId']; sealed: string }>(
  deps: RotateDeps,
  by: Operator,
  { table, after }: { table: Table<R>; after: R | undefined },
): Promise<Resealed & { last: R | undefined }> {
  return deps.db.begin(async (tx) => {
    await store.lockKeys(tx, 'to seal')
    const ring = await deps.secretKeys.ring()
    const rows = await table.lockSealedWith(tx, ring.fingerprints.slice(1), { after, limit: BATCH })
    const tried = rows.map((row) => ({ row, sealed: sealedAnew(ring, table.seatOf(row), row.sealed) }))
    const fresh = tried.flatMap(({ row, sealed }) => (sealed === undefined ? [] : [{ ...row, sealed }]))
    if (fresh.length > 0) await table.reseal(tx, fresh)
    await recordAll(tx, by, { key: ring.fingerprints[0]!, rows: tried.filter((one) => one.sealed !== undefined) })
    const broken = tried.flatMap(({ row, sealed }) => (sealed === undefined ? [table.seatOf(row)] : []))
    return { resealed: fresh.length, broken, last: rows.at(-1) }
  })
}

/** Undefined for one that does not open: it must not keep the others from it. */
function sealedAnew(ring: KeyRing, seat: Seat, sealed: string): string | undefined {
  try {
    return ring.seal(seat, ring.open(seat, sealed))
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

async function recordAll(
  tx: Tx,
  by: Operator,
  { key, rows }: { key: string; rows: readonly { row: Pick<SealedRow, 'orgId' | 'sealed'> }[] },
): Promise<void> {
  for (const [orgId, own] of Map.groupBy(rows, ({ row }) => row.orgId)) {
    const keys = [...new Set(own.map(({ row }) => sealedWith(row.sealed)))]
    const target = { type: 'org', id: orgId }
    const change = { action: ROTATED, target, before: { keys }, after: { key, secrets: own.length } }
    await record(tx, { ...by, orgId }, change)
  }
}

const ROTATED = 'secrets.rotateKey'

/** By org, keys that secrets of it were sealed with until a rotation. The audit log is never shortened. */
async function formerKeys(tx: Tx): Promise<Map<OrgId, Set<string>>> {
  const byOrg = Map.groupBy(await changesBy(tx, ROTATED), ({ orgId }) => orgId)
  const keysOf = ({ before }: { before: Record<string, unknown> | null }) => (before?.['keys'] ?? []) as string[]
  return new Map([...byOrg].map(([orgId, changes]) => [orgId, new Set(changes.flatMap(keysOf))]))
}

/** To each org, of the keys that were its own. */
async function recordRetired(
  tx: Tx,
  by: Operator,
  { removed, former }: { removed: readonly string[]; former: ReadonlyMap<OrgId, ReadonlySet<string>> },
): Promise<void> {
  for (const [orgId, own] of former) {
    const keys = removed.filter((key) => own.has(key))
    const change = { action: 'secrets.retireKeys', target: { type: 'org', id: orgId }, before: { keys } }
    if (keys.length > 0) await record(tx, { ...by, orgId }, change)
  }
}

export interface Retired {
  removed: string[]
  kept: string[]
  /** A file with the removed keys, beside that of the keys. Null: none was removed. */
  aside: string | null
}

/**
 * Takes keys out of the file that nothing is sealed with, and removes what killed rotations have left beside it. Copies
 * of the database from before still need these keys, so they go to a file of their own. Refused where one was never
 * used here: it may be what the secrets of another database are sealed with.
 */
export async function retireKeys({ db }: Pick<RotateDeps, 'db'>, by: Operator, path: string): Promise<Retired> {
  return holdingKeys(db, async (tx) => {
    // Nobody is just sealing with one of them.
    const file = await orFault(readKeyFile(path))
    const uses = new Set((await store.keysInUse(tx)).map((use) => use.fingerprint))
    const [first, ...others] = file.keys.map((key) => key.fingerprint)
    const removed = others.filter((key) => !uses.has(key))
    const former = await formerKeys(tx)
    const known = new Set([...former.values()].flatMap((keys) => [...keys]))
    refuseUnknown(removed.filter((key) => !known.has(key)))
    await recordRetired(tx, by, { removed, former })
    const stillOurs = () => store.lockKeys(tx, 'to change')
    const aside = removed.length > 0 ? await orFault(removeKeys(path, file, removed, stillOurs)) : null
    await orFault(removeDrafts(path))
    return { removed, kept: [first!, ...others.filter((key) => uses.has(key))], aside }
  })
}

function refuseUnknown(keys: readonly string[]): void {
  if (keys.length === 0) return
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'keyFile' },
    `It is not known that a secret of this database was sealed with ${keys.join(', ')}: the file may be that of ` +
      'another, whose secrets would be lost. Nothing was taken out. Name the database and the file that belong ' +
      'together (--database-url, --key-file); a key that you know nothing needs is taken out by hand.',
  )
}

function orFault<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: Error) => {
    throw new Fault('SECRETS_UNAVAILABLE', { reason: 'no key' }, `The keys cannot be used: ${error.message}.`)
  })
}
