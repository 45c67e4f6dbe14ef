import { RUN_ERRORS } from '@windlass/shared/errors.ts'
import type { RunErrorCode } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { BundleUnusable } from './bundles.ts'
import type { Bundles, HeldBundle } from './bundles.ts'
import type { Fate, Live } from './live.ts'
import type { Processes } from './processes.ts'
import type { ProgramEvent } from './program-output.ts'
import type { ProgramStart } from './run-program.ts'
import type { Spool } from './spool.ts'

export interface ExecuteDeps {
  bundles: Bundles
  processes: Processes
  spool: Spool
  log: Log
}

/**
 * A run's life on this agent, top to bottom. It is in the spool already and its `accept` is on the way; the bundle is
 * fetched meanwhile, and nothing of the program begins before the run is confirmed to be ours.
 */
export async function execute(deps: ExecuteDeps, live: Live): Promise<void> {
  const { offer } = live
  const fetched = settled(deps.bundles.hold(offer.bundle, live.unwanted))
  try {
    const verdict = await live.verdict
    if (verdict === 'refused') return deps.spool.forget(offer.run, offer.epoch)
    // Perhaps it is ours and the answer was lost: said now, the run goes to another agent before its lease is over.
    if (verdict === 'unknown') return conclude(deps, live, live.fate ? lostBy(live.fate) : UNCONFIRMED, 0)
    const bundle = await fetched
    if (live.fate || live.cancelled) return conclude(deps, live, endedBeforeStart(live), 0)
    if (bundle instanceof Error) return conclude(deps, live, withoutBundle(bundle), 0)
    await runProgram(deps, live, bundle)
  } finally {
    // Not waited for: a fetch that nobody wants any more may take its time.
    void fetched.then((bundle) => (bundle instanceof Error ? undefined : bundle.release()))
  }
}

async function runProgram(deps: ExecuteDeps, live: Live, bundle: HeldBundle): Promise<void> {
  const { run, epoch } = live.offer
  const began = performance.now()
  void deps.spool.append(run, epoch, [['start', Date.now()]])
  const program = deps.processes.run(startOf(live.offer, bundle.folder), (events) =>
    deps.spool.append(
      run,
      epoch,
      events.map((event) => toEntry(deps.log, live.offer, event)),
    ),
  )
  live.attach(program)
  deps.log.debug('run.began', { run, epoch, afterOfferMs: Math.round((began - live.receivedAt) * 100) / 100 })
  const ending = await program.done
  const computeMs = Math.round(performance.now() - began)
  conclude(deps, live, live.fate ? lostBy(live.fate) : withinLimits(ending, live.offer.outputBytes), computeMs)
  deps.log.debug('run.ended', { run, epoch, how: ending.how, fate: live.fate, computeMs })
}

/** The last entry. A stale placement is forgotten by the spool, so that its last word goes nowhere. */
function conclude({ spool }: ExecuteDeps, { offer }: Live, ending: Ending, computeMs: number): void {
  void spool.append(offer.run, offer.epoch, [['end', Date.now(), ending, computeMs]])
}

function startOf(offer: Offer, bundleDir: string): ProgramStart {
  const { run, attempt, epoch, org, workflow, environment, inputText, variables, token } = offer
  const { timeoutMs, graceMs, process, reuseKey, outputBytes } = offer
  const place = { runId: run, attempt, epoch, org, workflow, environment }
  return { ...place, inputText, bundleDir, variables, token, timeoutMs, graceMs, process, reuseKey, outputBytes }
}

const DATA_CHARS = 64 * 1024

/** Longer data is cut up where it is made; what gets here nevertheless must not stop everything behind it. */
function toEntry(log: Log, offer: Offer, event: ProgramEvent): Entry {
  const text = JSON.stringify(event.data) ?? 'null'
  const bytes = text.length * 3 > DATA_CHARS ? Buffer.byteLength(text) : text.length
  if (bytes <= DATA_CHARS + 1024) return ['e', event.at, event.type, text]
  log.warn('run.event.too-large', { run: offer.run, type: event.type, bytes })
  const note = `Left out: the data of this event has ${bytes} bytes, and ${DATA_CHARS} are allowed.`
  return ['e', event.at, event.type, JSON.stringify({ text: note, bytes })]
}

function withinLimits(ending: Ending, limitBytes: number): Ending {
  if (ending.how !== 'returned') return ending
  const bytes = Buffer.byteLength(ending.outputText)
  if (bytes <= limitBytes) return ending
  const message = `The returned value has ${bytes} bytes as JSON, and ${limitBytes} are allowed. Return less, or a reference to it.`
  return threw('OUTPUT_TOO_LARGE', message, { bytes, limitBytes })
}

function endedBeforeStart(live: Live): Ending {
  return live.fate ? lostBy(live.fate) : { how: 'cancelled', forced: false }
}

function withoutBundle(error: Error): Ending {
  return error instanceof BundleUnusable
    ? threw('BUNDLE_UNUSABLE', error.message)
    : { how: 'lost', reason: error.message }
}

function threw(code: RunErrorCode, message: string = RUN_ERRORS[code], detail?: Record<string, unknown>): Ending {
  return { how: 'threw', error: { name: 'Error', message, code, ...(detail && { detail }) } }
}

const REASONS: Record<Fate, string> = {
  stale: 'another process has the run',
  fenced: 'the agent lost its connection for longer than its lease allows',
  shutdown: 'the agent was stopped',
}

const UNCONFIRMED: Ending = { how: 'lost', reason: 'the coordinator did not confirm in time that the run is ours' }

function lostBy(fate: Fate): Ending {
  return { how: 'lost', reason: REASONS[fate] }
}

/** A failure is a value here: nobody may be waiting for it any more when it comes. */
async function settled(holding: Promise<HeldBundle>): Promise<HeldBundle | Error> {
  try {
    return await holding
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
