import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { CancelMessage, StartMessage } from '@windlass/shared/wire/program.ts'
import { AgentStoppedError, CancelledError, TimedOutError } from '../stop-errors.ts'
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
  /** How long it has then to come to where it stood. */
  patienceMs: number
  /** It has ended amid a handover, in a way that does not count. */
  hasEnded: boolean
  /** Its agent is being stopped, and the run goes on elsewhere. Answers whether the program may have noticed. */
  handover: (() => boolean) | undefined
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
  let hasLooked = false
  const context: RunContext = Object.freeze({
    runId: start.runId,
    attempt: start.attempt,
    org: start.org,
    workflow: Object.freeze(start.workflow),
    environment: start.environment,
    // Of an older coordinator, which had no other way to say it.
    trigger: Object.freeze(start.trigger ?? { kind: 'api' }),
    get signal() {
      hasLooked = true
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
    patienceMs: 0,
    hasEnded: false,
    handover: undefined,
    heard: 0,
    site: () => '',
    stop: (message) => {
      if (message.why === 'handover') return handOver(message)
      const reason = (session.stopped ??= reasonOf(message))
      session.patienceMs = message.graceMs / 4
      // The other half is for its tidying up.
      if (session.engine) session.engine.whenThere(() => tell(reason), message.graceMs / 2)
      else tell(reason)
    },
  }
  return session

  function tell(reason: Error): void {
    // A signal aborts once, and has said something else by then.
    if (controller?.signal.reason instanceof AgentStoppedError) controller = undefined
    control().abort(reason)
    session.engine?.stop(reason, session.patienceMs)
  }

  function handOver({ graceMs }: CancelMessage): void {
    if (session.stopped || session.handover) return
    session.handover = () => hasLooked || session.hasEnded
    // First: whoever listens to the signal may call something at once.
    session.engine?.handOver(session.handover)
    const rest = `What ends within ${graceMs} ms counts.`
    control().abort(new AgentStoppedError(`The agent is being stopped, and the run goes on elsewhere. ${rest}`))
  }
}

function reasonOf({ why, reason, graceMs }: CancelMessage): Error {
  const rest = `The program has ${graceMs} ms to tidy up.`
  if (why === 'timed-out') return new TimedOutError(`The run has used up its time. ${rest}`)
  return new CancelledError(`The run was cancelled${reason === '' ? '' : `: ${reason}`}. ${rest}`)
}
