import { createHash } from 'node:crypto'
import { RUN_ERRORS } from '@windlass/shared/errors.ts'
import type { RunErrorCode } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { LOST_REASONS, lostWhile } from '@windlass/shared/model/lost-reasons.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { Rest } from '../link/rest.ts'
import { fence, type FenceNeeds } from '../lease/fence.ts'
import type { Hooks } from '../hooks/hooks.ts'
import type { Takeover } from '../takeover/takeover.ts'
import { BundleUnusable, BundleUnwanted } from './bundle/bundles.ts'
import type { Bundles, HeldBundle } from './bundle/bundles.ts'
import { journalOf } from './journal-text.ts'
import type { LeftLines } from './program/left-lines.ts'
import { isHostTrouble } from './bundle/host-trouble.ts'
import type { Fate, AgentRun } from './agent-run.ts'
import type { Parking } from './parking.ts'
import type { Processes } from './hosts/processes.ts'
import type { ProgramEvent } from './program/output.ts'
import type { RecordedJournal } from './program/recorded-journal.ts'
import type { ProgramStart, RunningProgram } from './program/program.ts'
import { reportTo } from './report.ts'
import { MOST_BYTES } from './given-secrets.ts'
import { LEAST_BYTES } from './redact/forms.ts'
import { SecretsNotNow, SecretsTooLarge } from './secrets.ts'
import type { RunSecrets, Secrets } from './secrets.ts'
import type { Activity } from '../status/activity.ts'
import type { Slots } from './slots.ts'
import type { Spool } from './spool/spool.ts'

/** What a run's life here touches. */
export interface ExecuteNeeds extends FenceNeeds {
  bundles: Bundles
  secrets: Secrets
  processes: Processes
  spool: Spool
  rest: Pick<Rest, 'journal'>
  parking: Parking
  slots: Slots
  leftLines: LeftLines
  hooks: Hooks
  takeover: Takeover
  activity: Activity
  log: Log
}

/**
 * A run's life on this agent, top to bottom. It is in the spool already and its `accept` is on the way; bundle, journal
 * and secrets are fetched meanwhile, and nothing of the program begins before the run is confirmed to be ours.
 */
export async function execute(deps: ExecuteNeeds, agentRun: AgentRun): Promise<void> {
  const { offer } = agentRun
  const fetched = settled(deps.bundles.hold(offer.bundle, agentRun.unwanted))
  const recorded = settled(journalOf(deps.rest, offer, agentRun.unwanted))
  const read = settled(deps.secrets.read(agentRun))
  try {
    const verdict = await agentRun.verdict
    if (verdict === 'refused') return deps.spool.forget(offer.run, offer.epoch)
    // Perhaps it is ours and the answer was lost: said now, the run goes to another agent before its lease is over.
    if (verdict === 'unknown') return conclude(deps, agentRun, unreadyBy(agentRun.fate ?? 'unconfirmed'))
    const [bundle, journal, secrets] = await Promise.all([fetched, recorded, read])
    const waiting = bundle instanceof BundleUnwanted ? bundle.message : undefined
    if (agentRun.fate || agentRun.cancelled) return conclude(deps, agentRun, endedBeforeStart(agentRun, waiting))
    if (bundle instanceof Error) return conclude(deps, agentRun, withoutBundle(bundle))
    if (journal instanceof Error) return conclude(deps, agentRun, unready(journal))
    if (secrets instanceof Error) return conclude(deps, agentRun, withoutSecrets(secrets))
    const veto = await deps.hooks.preRun(agentRun)
    if (agentRun.fate || agentRun.cancelled) return conclude(deps, agentRun, endedBeforeStart(agentRun))
    if (veto) return conclude(deps, agentRun, { how: 'unready', reason: veto, blame: 'host' })
    await runProgram(deps, agentRun, { bundle, journal, secrets })
  } finally {
    // Not waited for: a fetch that nobody wants any more may take its time.
    void fetched.then((bundle) => (bundle instanceof Error ? undefined : bundle.release()))
    void read.then(() => deps.secrets.rests(offer.run, offer.epoch))
  }
}

async function runProgram(
  deps: ExecuteNeeds,
  agentRun: AgentRun,
  { bundle, journal, secrets }: { bundle: HeldBundle; journal: RecordedJournal; secrets: RunSecrets | undefined },
): Promise<void> {
  const { run, epoch } = agentRun.offer
  const began = performance.now()
  const lines = agentRun.offer.replay ? deps.leftLines.take(run, epoch) : undefined
  const report = reportTo(deps, agentRun)
  const begins = () => {
    deps.spool.begin(run, epoch)
    probe('program.begins', { run, epoch })
  }
  const save = () => deps.spool.flush()
  const start = { ...startOf(agentRun.offer, bundle.folder, journal, secrets), lines, begins, save }
  const program = deps.processes.run(start, report)
  agentRun.attach(program)
  deps.activity.started(performance.now() - agentRun.receivedAt)
  await Promise.race([program.started, program.done])
  // As long as there is no process, nothing of it has begun: another host may have what this one lacks.
  if (program.hasStarted()) {
    void deps.spool.append(run, epoch, [['start', Date.now(), ...inForce(program)]])
    if (secrets) void report(ofUnhidden(secrets, agentRun.offer.replay))
  }
  probe('program.started', { run, epoch })
  deps.log.debug('run.began', { run, epoch, afterOfferMs: Math.round((began - agentRun.receivedAt) * 100) / 100 })
  await follow(deps, agentRun, program, false)
}

/** To its end, and what is said of that. */
export async function follow(
  deps: ExecuteNeeds,
  agentRun: AgentRun,
  program: RunningProgram,
  wasTaken: boolean,
): Promise<void> {
  const { run, epoch, outputBytes } = agentRun.offer
  deps.takeover.watch(agentRun, program, wasTaken)
  const ending = await program.done
  // While this agent stood still, others may have ended it for its lease: that is no crash.
  fence(deps)
  const computeMs = program.computeMs()
  const left = program.leftLines()
  if (left) deps.leftLines.put(run, epoch, left)
  if (OVER.includes(ending.how)) deps.secrets.forget(run)
  const hasBegun = wasTaken || program.hasStarted()
  const at = program.saidAt(ending)
  ended(deps, agentRun, { ending: withinLimits(ending, outputBytes), at, hasBegun, computeMs })
}

interface Ended {
  ending: Ending
  /** When its program said so. */
  at?: number | undefined
  hasBegun: boolean
  computeMs: number
}

/** Nothing of it is left, and that is how it came to its end. */
export function ended(deps: ExecuteNeeds, agentRun: AgentRun, { ending, at, hasBegun, computeMs }: Ended): void {
  const { run, epoch } = agentRun.offer
  deps.parking.left(agentRun)
  const reported = endingOf(agentRun, ending, hasBegun)
  // What others made of it is of now.
  conclude(deps, agentRun, reported, { computeMs, at: reported === ending ? at : undefined })
  probe('program.ended', { run, epoch, how: reported.how })
  deps.log.debug('run.ended', { run, epoch, how: reported.how, fate: agentRun.fate, computeMs })
  deps.hooks.postRun(agentRun, reported)
}

/** Older coordinators pass over it. */
function inForce(program: RunningProgram): [EffectiveIsolation] | [] {
  const isolation = program.host()?.enclosure.effective
  return isolation ? [isolation] : []
}

/** A program that came to its own end before it was cut off has ended, as long as the run is ours. */
function endingOf({ fate, cancelled }: AgentRun, ending: Ending, hasBegun: boolean): Ending {
  if (!fate) return ending
  if (!hasBegun) return unreadyBy(fate)
  if (ending.how === 'timed-out') return ending
  if (fate !== 'shutdown' || ending.how === 'lost') return lostBy(fate)
  return ending.how === 'cancelled' && !cancelled ? lostBy(fate) : ending
}

/** The last entry. A stale placement is forgotten by the spool, so that its last word goes nowhere. */
function conclude(
  { activity, secrets, spool }: ExecuteNeeds,
  { offer }: AgentRun,
  ending: Ending,
  { computeMs = 0, at = Date.now() }: { computeMs?: number; at?: number | undefined } = {},
): void {
  activity.ended(ending.how)
  secrets.rests(offer.run, offer.epoch)
  void spool.append(offer.run, offer.epoch, [['end', at, ending, computeMs]])
}

export function startOf(
  offer: Offer,
  bundleDir: string,
  journal: RecordedJournal,
  secrets: RunSecrets | undefined,
): ProgramStart {
  const { run, attempt, epoch, org, workflow, environment, trigger, inputText, token } = offer
  const { timeoutMs, graceMs, process, outputBytes, eventDataBytes, replay } = offer
  // Of one level a name is one or the other. Where a secret is of the more specific one, it is the one that counts.
  const variables = { ...offer.variables, ...secrets?.values }
  const reuseKey = `${offer.reuseKey} ${keyOf(variables)}`
  const about = { runId: run, attempt, epoch, org, workflow, environment, trigger }
  const facts = { ...about, inputText, variables, token, replay }
  const { entries, forgotten = 0 } = offer.journal
  const recorded = { journal, entries, forgotten }
  const { redactor } = secrets ?? {}
  const limits = { outputBytes, eventDataBytes }
  return { ...facts, ...recorded, ...limits, bundleDir, timeoutMs, graceMs, process, reuseKey, redactor }
}

/** A program may keep what it has found in its environment: its process serves no run that has something else there. */
function keyOf(variables: Record<string, string>): string {
  const names = Object.keys(variables).sort()
  if (names.length === 0) return ''
  return createHash('sha256')
    .update(JSON.stringify(names.map((name) => [name, variables[name]])))
    .digest('base64')
}

/** It is the agent that speaks, in the log of the run: nobody else sees what is printed there. */
function ofUnhidden({ redactor, forgotten }: RunSecrets, isReplay: boolean): ProgramEvent[] {
  const { tooShort } = redactor
  const texts: string[] = []
  if (tooShort.length > 0 && !isReplay)
    texts.push(
      `Windlass does not hide ${tooShort.join(', ')}: what has fewer than ${LEAST_BYTES} bytes occurs by chance everywhere. ` +
        'Take a longer secret, or a variable.',
    )
  if (forgotten.length > 0)
    texts.push(
      `Windlass no longer hides the oldest former values of ${forgotten.join(', ')}: all that the run was given ` +
        `has more than ${MOST_BYTES} bytes, or the agent had no room for those of so many waiting runs. ` +
        'Keep what is large elsewhere, and the key to it in the secret.',
    )
  return texts.map((text) => ({ at: Date.now(), channel: 'log', type: 'log.stderr', data: { text } }))
}

const OVER: readonly Ending['how'][] = ['returned', 'threw', 'exited', 'cancelled', 'timed-out']

function withinLimits(ending: Ending, limitBytes: number): Ending {
  if (ending.how !== 'returned') return ending
  const bytes = Buffer.byteLength(ending.outputText)
  if (bytes <= limitBytes) return ending
  const message = `The returned value has ${bytes} bytes as JSON, and ${limitBytes} are allowed. Return less, or a reference to it.`
  return threw('OUTPUT_TOO_LARGE', message, { bytes, limitBytes })
}

/** `waiting`: what it had waited for until then. */
function endedBeforeStart({ fate, cancelled, offer }: AgentRun, waiting?: string): Ending {
  if (fate) return unreadyBy(fate, waiting)
  return cancelled?.why === 'timed-out'
    ? { how: 'timed-out', timeoutMs: offer.timeoutMs }
    : { how: 'cancelled', forced: false }
}

function withoutBundle(error: Error): Ending {
  return error instanceof BundleUnusable ? threw('BUNDLE_UNUSABLE', error.message) : unready(error)
}

/** Nothing of it has begun: it uses up no attempt, and a host on which that happens again and again is left alone for a while. */
function unready(error: Error): Ending {
  return { how: 'unready', reason: error.message, blame: isHostTrouble(error) ? 'host' : 'service' }
}

function threw(code: RunErrorCode, message: string = RUN_ERRORS[code], detail?: Record<string, unknown>): Ending {
  return { how: 'threw', error: { name: 'Error', message, code, ...(detail && { detail }) } }
}

function withoutSecrets(error: Error): Ending {
  if (error instanceof SecretsTooLarge) return threw('SECRETS_TOO_LARGE', error.message)
  if (error instanceof SecretsNotNow) return { how: 'unready', reason: error.message, blame: 'service' }
  return { how: 'lost', reason: error.message }
}

/** Nothing of it is left, and it has not come to an end by itself. */
export function lost(deps: ExecuteNeeds, agentRun: AgentRun, reason: string): void {
  conclude(deps, agentRun, agentRun.fate ? lostBy(agentRun.fate) : { how: 'lost', reason })
}

function lostBy(fate: Fate): Ending {
  return { how: 'lost', reason: LOST_REASONS[fate] }
}

/** Given up before there was a process for it: another agent may begin it, and no retry is used. */
function unreadyBy(why: Fate | 'unconfirmed', waiting?: string): Ending {
  return { how: 'unready', reason: lostWhile(why, waiting) }
}

/** A failure is a value here: nobody may be waiting for it any more when it comes. */
async function settled<T>(value: Promise<T>): Promise<T | Error> {
  try {
    return await value
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
