import type { RunErrorCode } from '@windlass/shared/errors.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import type { Enclosure } from '../../isolation/enclosure.ts'
import type { Exit } from '../../os/process.ts'

type Ended = Exclude<Exit, { failed: string }>

/** The program said nothing of an end, and its process is gone. */
function endedBySystem({ signal, exitCode }: Ended, enclosure: Enclosure | undefined): Ending {
  if (signal === null) return { how: 'exited', exitCode: exitCode ?? 0 }
  const diskMb = enclosure?.limits.diskMb ?? null
  if (signal === 'SIGXFSZ' && diskMb !== null) return workspaceFull(diskMb)
  return enclosure?.isOutOfMemory() ? { how: 'killed', signal, reason: OUT_OF_MEMORY } : { how: 'killed', signal }
}

const OUT_OF_MEMORY =
  'it needed more memory than a run may have here. Use less, or raise the memory limit of the pool or of its machine'

/** Nothing of the program was executed: it is the host that does not work. */
export function neverBegan(exit: Ended): Ending {
  const how = exit.signal ?? `exit code ${exit.exitCode}`
  const reason = `the program's process ended before the program could begin (${how}); what it printed is in the log of the run`
  return { how: 'unready', reason, blame: 'host' }
}

/** It ends for good: once more would fill the folder once more. */
export function workspaceFull(limitMb: number): Ending {
  const code: RunErrorCode = 'WORKSPACE_FULL'
  const message = `The run has more than ${limitMb} MiB in its workspace. Write less, or raise the disk limit of the pool or of its machine.`
  return { how: 'threw', error: { name: 'Error', code, message, detail: { limitMb } } }
}

/** Why the agent has made an end of it. */
export type Stop = { why: 'cancelled' | 'timed-out' | 'handover' } | { why: 'lost' | 'evicted'; reason: string }

interface Facts {
  stop: Stop | undefined
  isOutOfTime: boolean
  /** What the program itself has said. */
  outcome: Ending | undefined
  isForced: boolean
  hasStarted: boolean
  /** It was not started by this agent. */
  wasTaken: boolean
  timeoutMs: number
  enclosure: Enclosure | undefined
}

/** What a run's process has come to: the agent's word counts before the program's, and that before the system's. */
export function endingOf(exit: Exit, { stop, outcome, isForced, timeoutMs, ...facts }: Facts): Ending {
  // Another attempt would not know what this one has undone.
  if (facts.isOutOfTime) return { how: 'timed-out', timeoutMs }
  if (stop?.why === 'lost') return { how: 'lost', reason: stop.reason }
  if (stop?.why === 'evicted') return outcome ?? { how: 'evicted', reason: stop.reason }
  if (stop?.why === 'cancelled') return { how: 'cancelled', forced: isForced }
  // What it has thrown may come of the stop.
  if (stop?.why === 'handover') return outcome?.how === 'returned' ? outcome : HANDED_OVER
  if (outcome) return outcome
  if ('failed' in exit)
    return notStarted(facts.hasStarted, `the program's process could not be started: ${exit.failed}`)
  return facts.wasTaken ? { how: 'lost', reason: ENDED_UNSEEN } : endedBySystem(exit, facts.enclosure)
}

const HANDED_OVER: Ending = { how: 'lost', reason: LOST_REASONS.shutdown }
const ENDED_UNSEEN = 'its process ended, and how is not known: another agent had started it'

/** Nothing of it has begun as long as there was no process at all. */
export function notStarted(hasStarted: boolean, reason: string): Ending {
  return hasStarted ? { how: 'lost', reason } : { how: 'unready', reason, blame: 'host' }
}
