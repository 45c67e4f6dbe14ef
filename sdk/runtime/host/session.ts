import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { CancelMessage, StartMessage } from '@windlass/shared/wire/program.ts'
import { CancelledError, TimedOutError } from '../stop-errors.ts'
import type { Engine } from '../engine/port.ts'
import type { RunContext } from '../run-context.ts'

/** One run inside of this process. */
export interface Session {
  start: StartMessage
  /** What is recorded of it. */
  journal: readonly JournalRecord[]
  context: RunContext
  token: string
  /** Once something has been waited for. */
  engine: Engine | undefined
  /** Why the run is to end. */
  stopped: Error | undefined
  /** How many messages with completions it was sent. */
  heard: number
  /** Where the program makes the call that is being made. */
  site: () => string
  stop(message: CancelMessage): void
}

export function openSession(start: StartMessage, journal: readonly JournalRecord[]): Session {
  // Most programs never look at the signal, and AbortController is slow to load.
  let controller: AbortController | undefined
  const control = () => (controller ??= new AbortController())
  const context: RunContext = Object.freeze({
    runId: start.runId,
    attempt: start.attempt,
    org: start.org,
    workflow: Object.freeze(start.workflow),
    environment: start.environment,
    // Of an older coordinator, which had no other way to say it.
    trigger: Object.freeze(start.trigger ?? { kind: 'api' }),
    get signal() {
      return control().signal
    },
  })
  const session: Session = {
    start,
    journal,
    context,
    token: start.token,
    engine: undefined,
    stopped: undefined,
    heard: 0,
    site: () => '',
    stop: (message) => {
      session.stopped ??= reasonOf(message)
      control().abort(session.stopped)
      session.engine?.stop(session.stopped)
    },
  }
  return session
}

function reasonOf({ why, reason, graceMs }: CancelMessage): Error {
  const rest = `The program has ${graceMs} ms to tidy up.`
  if (why === 'timed-out') return new TimedOutError(`The run has used up its time. ${rest}`)
  return new CancelledError(`The run was cancelled${reason === '' ? '' : `: ${reason}`}. ${rest}`)
}
