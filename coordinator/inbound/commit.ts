import { createHash } from 'node:crypto'
import type { OrgId, RunId, WorkflowId } from '@windlass/shared/ids.ts'
import type { DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import type { Author, Change } from '../audit/record.ts'
import { record } from '../audit/record.ts'
import { type Db, isLockTimeout, type Tx } from '../db/client.ts'
import { createOrMerge } from '../engine/commit/debounce.ts'
import { createRuns } from '../engine/commit/trigger.ts'
import type { Moving } from '../engine/rules/run.ts'
import type { NewRun } from '../engine/store/new-runs.ts'
import type { MatchRow } from './row.ts'
import { decideHolders, type Decision, type KeyKind } from './rules/holders.ts'
import { topOf } from './rules/outcome.ts'
import { ID_TTL_MS, type Once } from './rules/signature.ts'
import { insertDeliveries, type NewDeliveryRow, outcomesOf, trimUnverified } from './store-deliveries.ts'
import { insertMatches } from './store-matches.ts'
import { giveBack, heldAs, type KeyRow, pointTo, takeKeys } from './store-keys.ts'

/** A delivery about to be written, with the runs that it starts unless they have been started before. */
export interface NewDelivery extends Omit<NewDeliveryRow, 'outcome' | 'reason'> {
  /** Where it is decided for the delivery as a whole. */
  whole?: { outcome: DeliveryOutcome; reason: string | null }
  /** Workflows that it does not start. */
  decided: MatchRow[]
  starts: { run: NewRun; keys: Key[] }[]
  /** Entry of the audit log; only a replay has one. */
  audit?: { by: Author; change: Change }
}

/** What a repetition of a delivery has again. */
export interface Key {
  kind: KeyKind
  /** SHA-256 in hex. */
  hash: string
  ttlMs: number
}

export interface Committed {
  outcome: DeliveryOutcome
  reason: string | null
  matches: MatchRow[]
  /** Runs that wait for further calls, of which this is one. Their readers are to be told. */
  merged: { id: RunId; orgId: OrgId }[]
}

/** Unverified deliveries that a source keeps. */
const MOST_UNVERIFIED = 100

interface KnownBy {
  id: string | null
  once: Once | undefined
  /** Where the signature leaves the id open. */
  body?: Buffer
}

export function keysOf(sourceId: string, { id, once, body }: KnownBy): Key[] {
  const key = (kind: Key['kind'], texts: string[], ttlMs: number): Key => {
    const hash = createHash('sha256').update(JSON.stringify([sourceId, kind, ...texts]))
    return { kind, hash: hash.digest('hex'), ttlMs }
  }
  const signatures = once?.signatures.map((signature) => key('signature', [signature], once.ttlMs)) ?? []
  if (id === null) return signatures
  const byId = [key('id', [id], ID_TTL_MS), ...signatures]
  if (!once || !body) return byId
  return [...byId, key('content', [id, createHash('sha256').update(body).digest('hex')], ID_TTL_MS)]
}

interface CommitOptions {
  lockMs?: number
  /** Comes before all else in the transaction. */
  first?: (tx: Tx) => Promise<void>
}

/**
 * Writes deliveries, their runs and what repetitions are known by: none of them is there without the others. Ids are
 * made by the caller, so that it may run again when its commit was not heard of: what is there is answered as it is.
 */
export async function commitDeliveries(
  db: Db,
  items: readonly NewDelivery[],
  options: CommitOptions = {},
): Promise<Committed[]> {
  try {
    return await db.begin((tx) => commitNew(tx, items, options))
  } catch (error) {
    if (!(error instanceof WrittenBefore)) throw error
    const before = await writtenBefore(db, error.items)
    // Nothing would be left out, and it would be tried for ever.
    if (before.size === 0) throw error
    const others = items.filter(({ id }) => !before.has(id))
    const committed = others.length > 0 ? await commitDeliveries(db, others, options) : []
    const byId = new Map([...before, ...others.map(({ id }, i) => [id, committed[i]!] as const)])
    return items.map(({ id }) => byId.get(id)!)
  }
}

async function commitNew(tx: Tx, items: readonly NewDelivery[], options: CommitOptions): Promise<Committed[]> {
  await options.first?.(tx)
  const { holders, earlier } = await holdersOf(tx, items, options)
  const starts = items.flatMap((item) => item.starts.filter(({ run }) => !holders.has(run.id)))
  const merged = await createAll(tx, starts)
  const committed = items.map((item) => settled(item, { holders, earlier, merged }))
  await write(tx, items, committed)
  return committed
}

/**
 * These deliveries are there: only the answer of their commit was lost. Thrown to undo what else was written with them,
 * as a call cannot be merged a second time. Nobody looks for them first, so an ordinary commit pays nothing for it.
 */
class WrittenBefore extends Error {
  readonly items: readonly NewDelivery[]

  constructor(items: readonly NewDelivery[]) {
    super('these deliveries were written before')
    this.items = items
  }
}

/** By the id of a delivery, what became of it. */
async function writtenBefore(db: Db, items: readonly NewDelivery[]): Promise<Map<string, Committed>> {
  const byId = new Map(items.map((item) => [item.id, item]))
  const rows = await outcomesOf(db, [...byId.keys()])
  return new Map(
    rows.map(({ id, ...row }) => {
      const { orgId, starts } = byId.get(id)!
      const own = new Set(starts.map(({ run }) => run.id))
      const merged = row.matches.flatMap(({ outcome, runId }) =>
        outcome === 'triggered' && runId !== null && !own.has(runId) ? [{ id: runId, orgId }] : [],
      )
      return [id, { ...row, merged }]
    }),
  )
}

/** Another delivery that takes the same key takes milliseconds, or waits itself: for the lock of a group, say. */
const KEY_MS = 100

/**
 * Writes those that wait for no lock of a group. Undefined: its org has one among them that waits for a key which
 * another delivery holds; the other orgs are not kept waiting for that.
 */
export async function commitUnlessWaiting(db: Db, items: readonly NewDelivery[]): Promise<(Committed | undefined)[]> {
  try {
    return await commitDeliveries(db, items, { lockMs: KEY_MS })
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    const ofOrgs = [...Map.groupBy(items, ({ orgId }) => orgId).values()]
    if (ofOrgs.length === 1) return items.map(() => undefined)
    const committed = new Map<NewDelivery, Committed | undefined>()
    for (const some of ofOrgs)
      for (const [i, one] of (await commitUnlessWaiting(db, some)).entries()) committed.set(some[i]!, one)
    return items.map((item) => committed.get(item))
  }
}

/** By the id of a run that is not made, since its call was merged into another, that one. */
async function createAll(tx: Tx, starts: NewDelivery['starts']): Promise<Map<RunId, Moving>> {
  const merged = new Map<RunId, Moving>()
  const keyOf = ({ run: { debounce } }: NewDelivery['starts'][number]) => debounce?.key ?? ''
  const debounced = starts.filter(({ run }) => run.debounce !== null).toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  // Their locks come before those of throttles and groups, and in one order for all.
  for (const { run, keys } of debounced) {
    const created = await createOrMerge(tx, run)
    if (!('into' in created)) continue
    merged.set(run.id, created.into)
    const rows = keys.map((key) => keyRow(run, key))
    await pointTo(tx, rows, created.into.id)
  }
  const others = starts.map(({ run }) => run).filter((run) => run.debounce === null)
  if (others.length > 0) await createRuns(tx, others)
  return merged
}

type Holders = Pick<Decision, 'holders' | 'earlier'>

/** By the id of a run that must not be made, or is one of a replay, the run that was made before. */
async function holdersOf(tx: Tx, items: readonly NewDelivery[], { lockMs }: { lockMs?: number }): Promise<Holders> {
  const starts = items.flatMap((item) => item.starts.map((start) => ({ ...start, isReplay: item.replayOf !== null })))
  const rows = starts.flatMap(({ run, keys }) => keys.map((key) => keyRow(run, key)))
  if (rows.length === 0) return { holders: new Map(), earlier: new Map() }
  if (lockMs !== undefined) await tx`select set_config('lock_timeout', ${String(lockMs)}, true)`
  const held = await takeKeys(tx, rows)
  const named = (run: NewRun, { kind, hash }: Key) => ({
    kind,
    name: heldAs({ workflowId: run.workflowId, key: hash }),
  })
  const claimants = starts.map(({ run, keys, isReplay }) => {
    return { runId: run.id, keys: keys.map((key) => named(run, key)), isReplay }
  })
  const { holders, earlier, keeps } = decideHolders(claimants, held)
  await passOn(tx, { rows, held, keeps })
  return { holders, earlier }
}

interface PassOn {
  rows: readonly KeyRow[]
  held: ReadonlyMap<string, RunId>
  keeps: ReadonlyMap<string, RunId>
}

/** Keys that were taken for a run which is not made go to the one that is to have them, or are free again. */
async function passOn(tx: Tx, { rows, held, keeps }: PassOn): Promise<void> {
  const taken = rows.filter((row) => held.get(heldAs(row)) === row.runId && keeps.get(heldAs(row)) !== row.runId)
  const byKeeper = Map.groupBy(taken, (row) => keeps.get(heldAs(row)))
  for (const [keeper, own] of byKeeper) await (keeper === undefined ? giveBack(tx, own) : pointTo(tx, own, keeper))
}

function keyRow(run: NewRun, { hash, ttlMs }: Key): KeyRow {
  return { orgId: run.orgId, workflowId: run.workflowId, key: hash, runId: run.id, ttlMs }
}

function settled(
  { whole, decided, starts }: NewDelivery,
  { holders, earlier, merged }: Holders & { merged: ReadonlyMap<RunId, Moving> },
): Committed {
  const started = starts.map(({ run: { id, workflowId } }) => {
    const into = merged.get(id)
    if (into) return mergedInto(workflowId, into.id)
    const madeOf = (run: RunId | undefined) => run && (merged.get(run)?.id ?? run)
    const before = madeOf(earlier.get(id))
    if (before !== undefined)
      return { workflowId, outcome: 'triggered' as const, reason: startedAgain(before), runId: id }
    return matchOf(workflowId, id, madeOf(holders.get(id)))
  })
  const matches = [...started, ...decided]
  const moved = starts.flatMap(({ run }) => merged.get(run.id) ?? [])
  return { ...(whole ?? topOf(matches)), matches, merged: moved }
}

function mergedInto(workflowId: WorkflowId, runId: RunId): MatchRow {
  return { workflowId, outcome: 'triggered', reason: 'It was merged into a run that waits for further calls.', runId }
}

const startedAgain = (before: RunId) => `It had started the run ${before} before; a replay starts one of its own.`

const REPEATED = 'It has been delivered before, and started this run then.'

function matchOf(workflowId: WorkflowId, runId: RunId, holder: RunId | undefined): MatchRow {
  if (holder === undefined) return { workflowId, outcome: 'triggered', reason: null, runId }
  return { workflowId, outcome: 'duplicate', reason: REPEATED, runId: holder }
}

async function write(tx: Tx, items: readonly NewDelivery[], committed: readonly Committed[]): Promise<void> {
  const inserted = await insertDeliveries(
    tx,
    items.map((item, i) => ({ ...item, outcome: committed[i]!.outcome, reason: committed[i]!.reason })),
  )
  if (inserted.size < items.length) throw new WrittenBefore(items.filter(({ id }) => !inserted.has(id)))
  await insertMatches(
    tx,
    items.flatMap(({ orgId, id }, i) => committed[i]!.matches.map((match) => ({ ...match, orgId, deliveryId: id }))),
  )
  const refused = items.filter((_, i) => committed[i]!.outcome === 'unverified').map(({ sourceId }) => sourceId)
  if (refused.length > 0) await trimUnverified(tx, [...new Set(refused)], MOST_UNVERIFIED)
  for (const { audit } of items) if (audit) await record(tx, audit.by, audit.change)
}
