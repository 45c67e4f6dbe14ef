import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { isConnectionLoss } from '../db/client.ts'
import { groupCommit, type GroupCommit } from '../db/group-commit.ts'
import { type AgentBatch, type Applied, type ReadBatch, weightOf } from './batch.ts'

interface EntryOptions {
  log: Log
  /** How long a lost database is waited for. */
  patienceMs: number
  read(batch: AgentBatch): Promise<ReadBatch>
  commit(batches: ReadBatch[]): Promise<Applied[]>
  onCommit(entries: number, ms: number): void
  giveUp(batch: ReadBatch, error: unknown): Promise<Applied>
}

/**
 * Commits under way at once: one as a rule, as large as it can be, and further ones while it waits for a locked run.
 */
export const ENTRY_LANES = 3
/** Ten times what a commit takes. */
const SPARE_AFTER_MS = 100

/** The way of what agents report: read and judged run by run, then committed together. */
export function openEntries(options: EntryOptions): GroupCommit<AgentBatch, Applied> {
  const { log, patienceMs } = options
  const group = groupCommit<ReadBatch, Applied>({
    name: 'entries',
    log,
    patienceMs,
    max: 4000,
    lanes: ENTRY_LANES,
    spare: { afterMs: SPARE_AFTER_MS, keyOf: ({ run }) => run },
    weight: weightOf,
    commit: (batches) => options.commit(batches),
    onCommit: (batches, ms) => options.onCommit(entriesIn(batches), ms),
    giveUp: (batch, error) => options.giveUp(batch, error),
  })
  return readBeforeCommit(options, group)
}

/**
 * What agents report on its way to the database: words about journals are read, values are judged, and only then the
 * batch takes its turn. Batches of one run keep their order; those of other runs pass by.
 */
function readBeforeCommit(
  { read, patienceMs }: Pick<EntryOptions, 'read' | 'patienceMs'>,
  commit: GroupCommit<ReadBatch, Applied>,
): GroupCommit<AgentBatch, Applied> {
  /** The last batch of each run that is being read. */
  const reading = new Map<string, Promise<unknown>>()

  async function add(batch: AgentBatch): Promise<Applied> {
    const before = reading.get(batch.run)
    if (!before && !batch.entries.some(isToBeRead)) return commit.add({ ...batch, words: NOTHING, outputs: NOTHING })
    const ready = (before ?? Promise.resolve()).then(() => readPatiently(read, batch, patienceMs))
    reading.set(batch.run, ready)
    const readBatch = await ready
    if (reading.get(batch.run) === ready) reading.delete(batch.run)
    const { failure } = readBatch
    // Says nothing about the batch: its agent comes again. Patience has been had, and others need not have it as well.
    if (isUnavailable(failure) || isConnectionLoss(failure)) throw failure
    return commit.add(readBatch)
  }

  return {
    add,
    async idle() {
      while (reading.size > 0) await Promise.all(reading.values())
      await commit.idle()
    },
  }
}

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
        return { ...batch, words: NOTHING, outputs: NOTHING, failure }
      await pause(RETRY_MS)
    }
  }
}

function entriesIn(batches: readonly AgentBatch[]): number {
  return batches.reduce((sum, batch) => sum + batch.entries.length, 0)
}
