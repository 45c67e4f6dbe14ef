import type { RunnerId } from '@windlass/shared/ids.ts'
import { channelOfProgramEvent, EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Entry, EntryBatch } from '@windlass/shared/wire/agent.ts'
import type { Deps } from '../deps.ts'
import { jsonLine } from './json-line.ts'
import { emit, lockRuns, saveMoves } from './moves.ts'
import { begin, settle } from './outcome.ts'
import type { Moving } from './row.ts'

export interface AgentBatch extends EntryBatch {
  runnerId: RunnerId
}

/** Committed up to `seq`; or the coordinator has less than the agent assumes; or the placement is no longer this one. */
export type Applied = { kind: 'ack'; seq: number } | { kind: 'resume'; seq: number } | { kind: 'stale' }

/**
 * Takes what agents report: events, starts, endings, of many runs in one transaction. Entries that have been taken already
 * (sent again after a lost connection) are skipped by their number, so every entry counts exactly once.
 */
export async function applyBatches(
  deps: Pick<Deps, 'db' | 'config' | 'versions' | 'tails' | 'bell' | 'dispatchers'>,
  batches: AgentBatch[],
): Promise<Applied[]> {
  const { answers, touched } = await deps.db.begin(async (tx) => {
    const runs = await lockRuns(
      tx,
      batches.map((batch) => batch.run),
    )
    const answers: Applied[] = []
    const touched = new Set<Moving>()
    for (const batch of batches) {
      const run = runs.get(batch.run)
      if (!isHeldBy(run, batch)) {
        answers.push(answerToStale(run, batch))
        continue
      }
      if (batch.first > run.seq + 1) {
        answers.push({ kind: 'resume', seq: run.seq })
        continue
      }
      const fresh = batch.entries.slice(run.seq + 1 - batch.first)
      for (const entry of fresh) await take(deps, run, entry)
      if (fresh.length > 0) touched.add(run)
      answers.push({ kind: 'ack', seq: run.seq })
    }
    await saveMoves(tx, [...touched])
    return { answers, touched }
  })
  announce(deps, touched)
  return answers
}

/** Whether the run is still on the agent that speaks of it, under the same placement. */
export function isHeldBy(run: Moving | undefined, batch: AgentBatch): run is Moving {
  if (!run || run.runnerId !== batch.runnerId || run.epoch !== batch.epoch) return false
  return !run.released && !isFinal(run.status) && run.status !== 'queued'
}

/** The end of a placement may be sent twice: what was committed under this epoch is acknowledged, the rest is stale. */
export function answerToStale(run: Moving | undefined, batch: AgentBatch): Applied {
  if (run && run.epoch === batch.epoch && run.runnerId === batch.runnerId && lastOf(batch) <= run.seq)
    return { kind: 'ack', seq: run.seq }
  return { kind: 'stale' }
}

/** Number of the last entry. */
export function lastOf(batch: AgentBatch): number {
  return batch.first + batch.entries.length - 1
}

/** So many characters count like one more entry: a transaction carries some 16 MiB at most. */
const CHARS_PER_ENTRY = 4096

/** What a batch counts for where many share a transaction. */
export function weightOf({ entries }: AgentBatch): number {
  return entries.reduce((sum, entry) => sum + 1 + charsOf(entry) / CHARS_PER_ENTRY, 0)
}

function charsOf(entry: Entry): number {
  if (entry[0] === 'e') return entry[3].length
  return entry[0] === 'end' && entry[2].how === 'returned' ? entry[2].outputText.length : 0
}

async function take(deps: Pick<Deps, 'config' | 'versions'>, run: Moving, entry: Entry): Promise<void> {
  run.seq++
  const [kind, at] = entry
  if (run.released) return
  if (kind === 'start') return begin(run, at)
  if (kind === 'e') return takeEvent(run, at, entry[2], entry[3])
  run.computeMs += entry[3]
  const version = await deps.versions.get(run.versionId)
  settle(run, entry[2], at, { version, outputBytes: deps.config.outputBytes })
}

/** An agent splits what is too long and knows the types; one that does not is shown by what it sent, not by a gap. */
function takeEvent(run: Moving, at: number, type: string, dataText: string): void {
  const channel = channelOfProgramEvent(type)
  if (!channel) return complain(run, at, `an event of the unknown type ${type}`)
  // A character has three bytes at most: short texts need no counting.
  const bytes = dataText.length * 3 > EVENT_DATA_BYTES ? Buffer.byteLength(dataText) : 0
  if (bytes > EVENT_DATA_BYTES)
    return emit(run, { at, channel, type, dataText: JSON.stringify({ truncated: true, bytes }) })
  const line = dataText.startsWith('{') ? jsonLine(dataText) : undefined
  if (line === undefined) return complain(run, at, `a ${type} whose data is no JSON object, or nests too deep`)
  emit(run, { at, channel, type, dataText: line })
}

function complain(run: Moving, at: number, what: string): void {
  emit(run, {
    at,
    channel: 'log',
    type: 'log.stderr',
    dataText: JSON.stringify({ text: `the agent sent ${what.slice(0, 200)}` }),
  })
}

/** Tells those who wait: readers of these logs, and pools in whose queue something has come back. */
export function announce(deps: Pick<Deps, 'tails' | 'bell' | 'dispatchers'>, runs: Iterable<Moving>): void {
  for (const run of runs) {
    deps.tails.ring(run.id)
    deps.bell.ring('run', run.id)
    if (!run.requeued) continue
    deps.dispatchers.poke(run.poolId)
    deps.bell.ring('pool', run.poolId)
  }
}
