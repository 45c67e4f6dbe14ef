import type { OrgId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import { isolationText } from '@windlass/shared/model/isolation-text.ts'
import type { Entry, EntryBatch } from '@windlass/shared/wire/agent.ts'
import type { Deps } from '../deps.ts'
import { readWord, type Word } from '../journal/read-word.ts'
import { takeOp } from '../journal/take.ts'
import { type IntakeDeps as FailureDeps, noteFailure } from '../runners/intake.ts'
import { announce, type AnnounceDeps } from './announce.ts'
import { appendPlain } from './append.ts'
import { lockRuns } from './moves.ts'
import { begin, goOn, park, refuseWord, settle } from './outcome.ts'
import type { Moving } from './row.ts'
import { saveMoves } from './save-moves.ts'
import { takeEvent } from './take-event.ts'
import type { PrepareDeps } from './trigger.ts'

export interface AgentBatch extends EntryBatch {
  runnerId: RunnerId
  /** Of the runner, and so of its runs. */
  orgId: OrgId
}

/** Committed up to `seq`; or the coordinator has less than the agent assumes; or the placement is no longer this one. */
export type Applied = { kind: 'ack'; seq: number } | { kind: 'resume'; seq: number } | { kind: 'stale' }

/**
 * Takes what agents report: events, journals, starts, endings, of many runs in one transaction. Entries that have been taken
 * already (sent again after a lost connection) are skipped by their number, so every entry counts exactly once.
 */
export async function applyBatches(
  deps: Pick<Deps, 'db' | 'config' | 'versions' | 'log'> & PrepareDeps & AnnounceDeps & FailureDeps,
  batches: AgentBatch[],
): Promise<Applied[]> {
  const words = await readWords(deps, batches)
  const appended = await appendPlain(deps, batches, words)
  if (appended) return appended
  const { answers, touched } = await deps.db.begin(async (tx) => {
    const runs = await lockRuns(
      tx,
      batches.map((batch) => batch.run),
      batches.filter((batch) => batch.entries.some(mayEnd)).map((batch) => batch.run),
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
      for (const entry of fresh) await take(deps, run, entry, words)
      if (fresh.length > 0) touched.add(run)
      run.isHeard ||= fresh.length > 0
      answers.push({ kind: 'ack', seq: run.seq })
    }
    await saveMoves(tx, [...touched])
    return { answers, touched }
  })
  announce(deps, touched)
  await noteHostFailures(deps, touched)
  return answers
}

/** A host that cannot prepare what it is given gets no more for a while. What is written is written, whatever becomes of this. */
async function noteHostFailures(deps: Pick<Deps, 'log'> & FailureDeps, runs: Iterable<Moving>): Promise<void> {
  for (const { runnerId, hostFailure } of runs) {
    if (runnerId === null || hostFailure === null) continue
    await noteFailure(deps, runnerId, hostFailure).catch((error: unknown) =>
      deps.log.warn('runner.failure.unnoted', { runnerId, error }),
    )
  }
}

/** What the programs say about their journals, read before anything is locked. */
export type Words = ReadonlyMap<Entry, Word>

/** A word about the journal may be one too many, or none. */
function mayEnd(entry: Entry): boolean {
  return entry[0] === 'end' || entry[0] === 'j'
}

async function readWords(deps: PrepareDeps, batches: AgentBatch[]): Promise<Words> {
  const words = new Map<Entry, Word>()
  const said = batches.flatMap((batch) =>
    batch.entries.flatMap((entry) => (entry[0] === 'j' ? [{ batch, entry }] : [])),
  )
  for (const { batch, entry } of said) {
    const word = await readWord(deps, { orgId: batch.orgId, runId: batch.run as RunId }, entry[2])
    if (word) words.set(entry, word)
    // Compiling a schema takes milliseconds, and a program may ask hundreds of questions at once.
    if (word?.op.op === 'open' && word.op.ask.for === 'input') await new Promise(setImmediate)
  }
  return words
}

/** Whether the run is still on the agent that speaks of it, under the same placement. */
export function isHeldBy(run: Moving | undefined, batch: AgentBatch): run is Moving {
  if (!run || run.runnerId !== batch.runnerId || run.epoch !== batch.epoch) return false
  return run.place !== null && !run.released && !isFinal(run.status) && run.status !== 'queued'
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
  if (entry[0] === 'j') return entry[2].length
  return entry[0] === 'end' && entry[2].how === 'returned' ? entry[2].outputText.length : 0
}

async function take(deps: Pick<Deps, 'config' | 'versions'>, run: Moving, entry: Entry, words: Words): Promise<void> {
  run.seq++
  if (run.released) return
  const at = entry[1]
  switch (entry[0]) {
    case 'start':
      return begin(run, at, entry[2] ? isolationText(entry[2]) : null)
    case 'e':
      return takeEvent(run, at, entry[2], entry[3])
    case 'j': {
      const word = words.get(entry)
      if (!word) return refuseWord(run, at, `It begins with ${entry[2].slice(0, 300)}`)
      return takeOp(run, at, word)
    }
    case 'park':
      spend(run, entry[3])
      return park(run, entry[2], at)
    case 'resume':
      return goOn(run, at)
    case 'end': {
      spend(run, entry[3])
      const version = await deps.versions.get(run.versionId)
      return settle(run, entry[2], at, { version, outputBytes: deps.config.outputBytes })
    }
  }
}

function spend(run: Moving, computeMs: number): void {
  run.computeMs += computeMs
  run.activeMs += computeMs
  run.isMoved = true
}
