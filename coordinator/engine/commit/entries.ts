import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { isConnectionLoss } from '../../db/client.ts'
import { groupCommit, type GroupCommit } from '../../db/group-commit.ts'
import type { SlowCommits } from '../../db/slow-commits.ts'
import type { Backlog } from './backlog.ts'
import {
  type AgentBatch,
  type Applied,
  isHeavy,
  MOST_WEIGHT,
  partsOf,
  type ReadBatch,
  weightOf,
} from '../rules/batch.ts'

interface EntryOptions {
  log: Log
  slow: SlowCommits
  backlog: Omit<Backlog, 'isThere'>
  /** How long a lost database is waited for. */
  patienceMs: number
  read(batch: AgentBatch): Promise<ReadBatch>
  commit(batches: ReadBatch[]): Promise<Applied[]>
  onCommit(entries: number, ms: number): void
  giveUp(batch: ReadBatch, error: unknown): Promise<Applied>
  onRefused(batch: ReadBatch, error: unknown): void
}

/**
 * Commits under way at once: one as a rule, as large as it can be, and further ones while it waits for a locked run.
 */
export const ENTRY_LANES = 3
/** Ten times what a commit takes. */
const SPARE_AFTER_MS = 100

/** The way of what agents report: read and judged run by run, then committed together. */
export function openEntries(options: EntryOptions): GroupCommit<AgentBatch, Applied> {
  const { log, slow, backlog, patienceMs } = options
  const group = groupCommit<ReadBatch, Applied>({
    name: 'entries',
    log,
    patienceMs,
    max: MOST_WEIGHT,
    lanes: ENTRY_LANES,
    spare: { afterMs: SPARE_AFTER_MS, keyOf },
    slow,
    weight: weightOf,
    orgOf: ({ orgId }) => orgId,
    commit: (batches) => noting(backlog, options.commit(batches)),
    onCommit: (batches, ms) => options.onCommit(entriesIn(batches), ms),
    giveUp: (batch, error) => options.giveUp(batch, error),
    onRefused: (batch, error) => options.onRefused(batch, error),
  })
  const entries = readBeforeCommit({ patienceMs, read: (batch) => noting(backlog, options.read(batch)) }, group)
  return { ...entries, add: (batch) => backlog.track(entries.add(batch)) }
}

/** The same, and notes whether the database is away. */
async function noting<T>(backlog: Pick<Backlog, 'lost' | 'works'>, work: Promise<T>): Promise<T> {
  try {
    const done = await work
    backlog.works()
    return done
  } catch (error) {
    if (isConnectionLoss(error)) backlog.lost()
    throw error
  }
}

/**
 * What agents report on its way to the database: commands for journals are read, values are judged, and only then the
 * batch takes its turn. Batches of one run keep their order; those of other runs pass by. A batch that is too much for
 * a transaction, or creates runs, is committed before the next one of its run is read.
 */
function readBeforeCommit(
  { read, patienceMs }: Pick<EntryOptions, 'read' | 'patienceMs'>,
  commit: GroupCommit<ReadBatch, Applied>,
): GroupCommit<AgentBatch, Applied> {
  /** The last batch of each run that is on its way: resolves, always, when the next one may follow. */
  const underWay = new Map<string, Promise<void>>()

  async function add(batch: AgentBatch): Promise<Applied> {
    const key = keyOf(batch)
    const before = underWay.get(key)
    if (!before && !batch.entries.some(isToBeRead) && batch.entries.length <= MOST_WEIGHT)
      return commit.add({ ...batch, commands: NOTHING, outputs: NOTHING })
    const { promise, resolve } = Promise.withResolvers<void>()
    underWay.set(key, promise)
    const letFollow = () => {
      if (underWay.get(key) === promise) underWay.delete(key)
      resolve()
    }
    try {
      await before
      const readBatch = await readPatiently(read, batch, patienceMs)
      const { failure } = readBatch
      // Says nothing about the batch: its agent comes again. Others need not have the patience that has been had.
      if (isUnavailable(failure) || isConnectionLoss(failure)) throw failure
      const parts = partsOf(readBatch)
      if (failure === undefined && isHeavy(readBatch, parts)) return await addParts(parts)
      const committed = commit.add(readBatch)
      letFollow()
      return await committed
    } finally {
      letFollow()
    }
  }

  /** One after the other, so that other runs pass by in between. */
  async function addParts(parts: readonly ReadBatch[]): Promise<Applied> {
    let applied!: Applied
    let isRepeated = false
    for (const part of parts) {
      applied = await commit.add(part)
      if (applied.kind !== 'ack') break
      isRepeated ||= applied.isRepeated === true
    }
    return applied.kind === 'ack' ? { ...applied, isRepeated } : applied
  }

  return {
    add,
    async idle() {
      while (underWay.size > 0) await Promise.all(underWay.values())
      await commit.idle()
    },
  }
}

/** A run, as one agent speaks of it: what others say of the same run waits for nobody, and nobody for them. */
const keyOf = ({ runnerId, run }: AgentBatch) => `${runnerId} ${run}`

const NOTHING: ReadonlyMap<Entry, never> = new Map<Entry, never>()

function isToBeRead(entry: Entry): boolean {
  return entry[0] === 'j' || (entry[0] === 'end' && entry[2].how === 'returned')
}

function isUnavailable(failure: unknown): boolean {
  return failure instanceof Fault && failure.code === 'UNAVAILABLE'
}

const RETRY_MS = 500

/** Never rejects: a batch that cannot be read is treated like one that cannot be written. */
async function readPatiently(read: EntryOptions['read'], batch: AgentBatch, patienceMs: number): Promise<ReadBatch> {
  const since = performance.now()
  for (;;) {
    try {
      return await read(batch)
    } catch (failure) {
      if (!isConnectionLoss(failure) || performance.now() - since > patienceMs)
        return { ...batch, commands: NOTHING, outputs: NOTHING, failure }
      await pause(RETRY_MS)
    }
  }
}

function entriesIn(batches: readonly AgentBatch[]): number {
  return batches.reduce((sum, batch) => sum + batch.entries.length, 0)
}
