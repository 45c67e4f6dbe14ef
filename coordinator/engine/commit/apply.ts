import type { Log } from '@windlass/shared/log.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import { isolationText } from '@windlass/shared/model/isolation-text.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Config } from '../../config.ts'
import type { Tx } from '../../db/client.ts'
import type { RunVersions } from './versions.ts'
import type { TermsReader } from '../../workflows/terms.ts'
import { setStopDeadlines } from './cancel.ts'
import { createHeldCheck, type Holders, NotHeld } from './holders.ts'
import { type CallingRun, prepareCallAgain } from './prepare-call.ts'
import { readCommand } from './read-command.ts'
import { takeOp } from '../rules/journal-op.ts'
import type { JournalCommand } from '../rules/journal-command.ts'
import { createSlices } from '../../slices.ts'
import { isLongAgo } from '../../stay.ts'
import { offeredAmong } from './acceptances.ts'
import { appendPlain } from './append.ts'
import type { AgentBatch, Applied, Output, ReadBatch } from '../rules/batch.ts'
import { MOST_TO_CLOSE } from './light-piece.ts'
import { type MoveDeps, moveRuns } from './move-runs.ts'
import { goOver, isOver, judgedAt, type Overtime, overtimesOf } from './overtime.ts'
import { goesBackAtOnce } from '../rules/going-back.ts'
import { begin, goOn, park, refuseCommand, settle } from '../rules/outcome.ts'
import { useUp } from '../rules/out-of-time.ts'
import type { Moving } from '../rules/run.ts'
import { takeEvent } from '../rules/take-event.ts'
import type { Returns } from '../../dispatch/returns.ts'
import type { RunnerNotes } from './runner-notes.ts'
import type { PrepareDeps } from './trigger.ts'
import { jsonLine } from '../rules/json-line.ts'
import { invalidOutput, NOT_JSON, tooLargeOutput } from '../rules/run-errors.ts'

/**
 * Takes what agents report: events, journals, starts, endings, of many runs in one transaction. Entries that have been
 * taken already (sent again after a lost connection) are skipped by their number, so every entry counts exactly once.
 */
export async function applyBatches(deps: ApplyDeps, batches: ReadBatch[]): Promise<Applied[]> {
  const unreadable = batches.find(({ failure }) => failure !== undefined)
  if (unreadable) throw unreadable.failure
  return (await appendPlain(deps, batches)) ?? applyLocked(deps, batches)
}

type ApplyDeps = { versionTerms: TermsReader; config: Config; returns: Returns } & MoveDeps & NoteDeps

/** The way that takes any batch. What the short one writes has to agree with it. */
export async function applyLocked(deps: ApplyDeps, batches: readonly ReadBatch[]): Promise<Applied[]> {
  const locking = {
    heldBy: batches.map((batch) => batch.runnerId),
    ids: batches.map((batch) => batch.run),
    ending: batches.filter((batch) => batch.entries.some(mayEnd)).map((batch) => batch.run),
  }
  const { answers, touched } = await deps.returns.during((mayReturn) =>
    moveRuns(deps, locking, async (tx, runs) => {
      if (batches.length > 1 && entriesToClose(batches, runs) > MOST_TO_CLOSE) throw new Error(TOO_MUCH_TO_CLOSE)
      const answer = await takeAll({ ...deps, tx, mayReturn }, runs, batches)
      await setStopDeadlines(tx, deps, stoppedForTime(batches, answer.touched))
      return { moved: answer.touched, answer }
    }),
  )
  await noteFailures(deps, [...touched])
  return answers
}

/** Those whose agents say that their programs were told to stop, and that have not ended with that. */
function stoppedForTime(batches: readonly ReadBatch[], touched: ReadonlySet<Moving>): Moving[] {
  const stopped = new Set(batches.filter(({ entries }) => entries.some(isTimeUsedUp)).map(({ run }) => run))
  return stopped.size === 0 ? [] : [...touched].filter((run) => stopped.has(run.id) && !isFinal(run.status))
}

const isTimeUsedUp = (entry: Entry) => entry[0] === 'resume' && entry[2] === 'timed-out'

type TakeDeps = Pick<ApplyDeps, 'versionTerms' | 'config' | 'databaseClock'> & { tx: Tx; mayReturn: Returns['take'] }

async function takeAll(
  deps: TakeDeps,
  runs: ReadonlyMap<string, Moving>,
  batches: readonly ReadBatch[],
): Promise<{ answers: Applied[]; touched: Set<Moving> }> {
  const answers: Applied[] = []
  const touched = new Set<Moving>()
  const overtimes = await overtimesOf(deps, batches, runs)
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
    const isRepeated = batch.first <= run.seq
    const fresh = batch.entries.slice(run.seq + 1 - batch.first)
    const overtime = overtimes.get(run.id)
    for (const entry of fresh) await take({ ...deps, overtime }, run, entry, batch)
    if (overtime) goOver(run, overtime)
    if (fresh.length > 0) touched.add(run)
    run.isHeard ||= fresh.length > 0
    answers.push({ kind: 'ack', seq: run.seq, isRepeated })
  }
  return { answers, touched }
}

/** Nobody hears of it: the group commit tries halves of such a batch, down to a single end. */
const TOO_MUCH_TO_CLOSE = `The journals of the runs that end here have more than ${MOST_TO_CLOSE} entries together.`

function entriesToClose(batches: readonly ReadBatch[], runs: ReadonlyMap<string, Moving>): number {
  const ends = batches.filter(({ entries }) => entries.some(([what]) => what === 'end'))
  const moving = ends.flatMap(({ run }) => runs.get(run) ?? [])
  return moving.reduce((sum, { entries, forgottenEntries }) => sum + entries - forgottenEntries, 0)
}

type NoteDeps = { log: Log; runnerNotes: RunnerNotes }

/**
 * A host that cannot prepare what it is given gets no more for a while; nor does an agent that is killed time and again
 * before it accepts. What is written is written, whatever becomes of this.
 */
async function noteFailures(deps: NoteDeps, runs: readonly Moving[]): Promise<void> {
  const unbegun = runs.flatMap(({ runnerId, isUnbegun }) => (isUnbegun && runnerId !== null ? [runnerId] : []))
  if (unbegun.length > 0)
    await deps.runnerNotes
      .unaccepted([...new Set(unbegun)])
      .catch((error: unknown) => deps.log.warn('runner.failure.unnoted', { runners: unbegun, error }))
  for (const { runnerId, hostFailure } of runs) {
    if (runnerId === null || hostFailure === null) continue
    await deps.runnerNotes
      .failed(runnerId, hostFailure)
      .catch((error: unknown) => deps.log.warn('runner.failure.unnoted', { runnerId, error }))
  }
}

/** A command for the journal may be one too many, or none. */
function mayEnd(entry: Entry): boolean {
  return entry[0] === 'end' || entry[0] === 'j'
}

type ReadDeps = PrepareDeps & { runVersions: RunVersions; holders: Holders; config: Config }

/**
 * Reads what programs say and judges what they return, before anything is locked. What would keep a process or the
 * database busy is done only for the runner that holds the run: others could name any, and it would pay for them.
 */
export async function readBatch(deps: ReadDeps, batch: AgentBatch): Promise<ReadBatch> {
  try {
    return { ...batch, ...(await readEntries(deps, batch)) }
  } catch (error) {
    if (!(error instanceof NotHeld)) throw error
    return { ...batch, commands: new Map(), outputs: new Map(), isUnheld: true }
  }
}

async function readEntries(deps: ReadDeps, batch: AgentBatch): Promise<Pick<ReadBatch, 'commands' | 'outputs'>> {
  const from = callingRun(deps, batch)
  const commands = new Map<Entry, JournalCommand>()
  const outputs = new Map<Entry, Output>()
  const endOfSlice = createSlices(batch.orgId)
  const since = performance.now()
  for (const entry of batch.entries) {
    const turn = endOfSlice()
    if (turn) await turn
    if (entry[0] === 'j') {
      const command = await readCommand(deps, from, entry[2])
      if (command) commands.set(entry, command)
    } else if (entry[0] === 'end' && entry[2].how === 'returned') {
      const output = await readOutput(deps, from, entry[2])
      if (output) outputs.set(entry, output)
    }
  }
  // Some may have been read long before the others.
  if (isLongAgo(since))
    for (const [entry, command] of commands) commands.set(entry, await prepareCallAgain(deps, batch.orgId, command))
  return { commands, outputs }
}

function callingRun({ holders }: ReadDeps, { run, epoch, runnerId, orgId }: AgentBatch): CallingRun {
  const assertHeld = createHeldCheck(holders, { runId: run, epoch, runnerId, orgId })
  return { orgId, runId: run as RunId, payer: { run, epoch, assertHeld } }
}

/** Returns undefined when there is no such run. */
async function readOutput(
  deps: ReadDeps,
  { orgId: org, runId, payer }: CallingRun,
  { outputText }: Extract<Ending, { how: 'returned' }>,
): Promise<Output | undefined> {
  const { maxOutputBytes } = deps.config
  const bytes = Buffer.byteLength(outputText)
  if (bytes > maxOutputBytes) return { error: tooLargeOutput(bytes, maxOutputBytes) }
  const line = jsonLine(outputText)
  if (line === undefined) return { error: invalidOutput({ path: 'output', message: NOT_JSON }) }
  const version = await deps.runVersions.of({ orgId: org, runId }, () => payer.assertHeld())
  if (!version) return undefined
  const ask = { root: 'output', org, ...payer, isPatient: true }
  const verdict = await deps.judge.judge(version.output, { text: line }, ask)
  return verdict.is === 'fits' ? { line } : { line, error: invalidOutput(verdict.invalid, runId) }
}

/** Whether the run is still on the agent that speaks of it, under the same placement. */
export function isHeldBy(run: Moving | undefined, batch: ReadBatch): run is Moving {
  if (!run || batch.isUnheld || run.runnerId !== batch.runnerId || run.epoch !== batch.epoch) return false
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

async function take(
  deps: TakeDeps & { overtime: Overtime | undefined },
  run: Moving,
  entry: Entry,
  batch: ReadBatch,
): Promise<void> {
  run.seq++
  if (run.released) return
  if (deps.overtime) run.timedOut = isOver(run, deps.overtime, entry)
  const at = entry[1]
  switch (entry[0]) {
    case 'start':
      return begin(run, at, entry[2] ? isolationText(entry[2]) : null)
    case 'e':
      return takeEvent(run, entry, deps.config)
    case 'j': {
      const command = batch.commands.get(entry)
      if (!command) return refuseCommand(run, at, `It begins with ${entry[2].slice(0, 300)}`)
      return takeOp(run, at, command)
    }
    case 'park':
      spend(run, entry[3])
      return park(run, entry[2], at)
    case 'resume':
      goOn(run, at)
      if (isTimeUsedUp(entry)) useUp(run, await deps.versionTerms.get(run.versionId, deps.tx))
      return
    case 'end': {
      spend(run, entry[3])
      const version = await deps.versionTerms.get(run.versionId, deps.tx)
      const isOffered = mayBeOffered(entry[2]) && (await isUnaccepted(deps.tx, batch))
      const isToRest = goesBackAtOnce(run, entry[2], isOffered) && !deps.mayReturn(run.orgId)
      const settling = { version, output: batch.outputs.get(entry), config: deps.config, isOffered, isToRest }
      return settle(run, entry[2], judgedAt(run, entry[1], deps.overtime), settling)
    }
  }
}

/** Where it matters whether it was accepted. */
const mayBeOffered = ({ how }: Ending) => how === 'lost' || how === 'unready'

async function isUnaccepted(tx: Tx, { runnerId, run, epoch }: AgentBatch): Promise<boolean> {
  const offered = await offeredAmong(tx, runnerId, [[run, epoch]])
  return offered.length > 0
}

function spend(run: Moving, computeMs: number): void {
  run.computeMs += computeMs
  run.activeMs += computeMs
  run.isMoved = true
}
