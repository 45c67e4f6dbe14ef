import type { Channel, RunEvent } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { patiently } from '../client/patience.ts'
import { begun } from './begun.ts'
import { EXIT } from './exit-codes.ts'
import { eventLine } from './event-line.ts'
import { Failure } from './failure.ts'
import { onLostOutput } from './lost-output.ts'
import { answerSample } from './schema-text.ts'
import type { Session } from './session.ts'
import { json, lengthText, linesOf, note, paint, print, safe } from './terminal.ts'

export interface FollowWishes {
  channels?: Channel[]
  since?: number
  /** Leaves out what happened before, in milliseconds since the epoch. */
  notBefore?: number
  /** Prints each event so, on standard output: the events are then the answer, and the returned value is not shown. */
  line?: (event: RunEvent) => string
  /** Stop following after this long; the run goes on. */
  timeoutMs?: number
  /** How long an outage may last while it is followed; 2 min by default. */
  patienceMs?: number
}

const EXIT_OF: Record<'completed' | 'failed' | 'cancelled', number> = {
  completed: EXIT.ok,
  failed: EXIT.failed,
  cancelled: EXIT.cancelled,
}

/**
 * Follows a run to its end: events on standard error, the returned value on standard output; with `--json` each event
 * and at last the run as lines of JSON on standard output. Ctrl-C stops following and leaves the run alone.
 */
export async function followRun(session: Session, run: Run, wishes: FollowWishes): Promise<number> {
  const stop = stopper(run, wishes.timeoutMs)
  try {
    return await tellRun(session, run, wishes, stop.signal)
  } finally {
    stop.over()
  }
}

/** The same for a caller who stops by a signal of his own; then the signal's reason is thrown. */
export async function tellRun(session: Session, run: Run, wishes: FollowWishes, signal: AbortSignal): Promise<number> {
  const next = `windlass logs -f ${run.id}`
  const detail = { run: run.id }
  try {
    await tellEvents(session, run, wishes, signal).catch((error: unknown) => {
      throw begun(error, { what: `Stopped following ${run.id}, which that does not end`, next, detail })
    })
    const ended = await endOf(session, run, wishes, signal).catch((error: unknown) => {
      throw begun(error, { what: `${run.id} has ended, but how could not be read`, next, detail })
    })
    if (session.isJson) print(JSON.stringify({ run: ended }))
    else await tellEnd(session, ended, wishes, signal)
    return isFinal(ended.status) ? EXIT_OF[ended.status] : EXIT.failed
  } finally {
    session.progress.end()
  }
}

async function endOf(session: Session, { id }: Run, { patienceMs }: FollowWishes, signal: AbortSignal): Promise<Run> {
  const read = () => session.client.runs.get({ run: id }, { signal })
  return (await patiently(read, { signal, patienceMs, onReconnect: tellsLost(session) })).run
}

const tellsLost =
  ({ isJson, progress }: Session) =>
  (why: string) =>
    isJson || progress.note(paint('dim', safe(`connection lost (${why}), trying again`, process.stderr)))

async function tellEvents(session: Session, run: Run, wishes: FollowWishes, signal: AbortSignal): Promise<void> {
  const { progress, client, isJson } = session
  const { channels, since, notBefore = 0, patienceMs } = wishes
  waitFor(session, run, run.status)
  const said = tellsOf()
  const onReconnect = tellsLost(session)
  const onReset = (message: string) =>
    isJson
      ? print(JSON.stringify({ type: 'reset', message }))
      : progress.note(paint('yellow', safe(message, process.stderr)))
  for await (const event of client.follow(run.id, { channels, since, signal, patienceMs, onReconnect, onReset })) {
    if (event.at < notBefore) continue
    if (isJson) print(JSON.stringify(event))
    else if (wishes.line) progress.print(wishes.line(event))
    else progress.note(eventLine(event))
    if (event.type === 'run.awaiting_input' && !isJson && !wishes.line) await tellQuestions(session, run, signal)
    if (event.channel === 'lifecycle') waitFor(session, run, event.type.replace(/^run\./, ''), said(event))
  }
  progress.end()
}

/**
 * What is asked of people now, and what to type. A log that is read later says nothing that has been answered since.
 */
async function tellQuestions({ client, progress }: Session, run: Run, signal: AbortSignal): Promise<void> {
  // Following goes on without it; the hint that comes later names the command.
  const { inputs } = await client.inputs.list({ run: run.id }, { signal }).catch(() => ({ inputs: [] }))
  for (const { id, prompt, schema } of inputs.toReversed()) {
    progress.note(paint('yellow', safe(`? ${prompt}`, process.stderr)))
    progress.note(`  windlass inputs respond ${id} ${answerSample(schema)}`)
  }
}

const WAITING: Record<string, string> = {
  queued: 'queued, waiting for a runner',
  pending: 'a runner is starting it',
  running: 'running',
  cancelling: 'cancelling',
  resumed: 'running',
  blocked: 'blocked, waiting for somebody to decide',
  sleeping: 'sleeping',
  awaiting_input: 'waiting for an answer',
  waiting_for_child: 'waiting for a child run',
}

/** What an event has told of the wait that follows it. */
interface WaitFacts {
  isSaid: true
  /** How long the next attempt waits. */
  delayMs: number
}

/** Reads the events in their order: the delay of an attempt stands in the one before it is queued. */
function tellsOf(): (event: RunEvent) => WaitFacts {
  let delayMs = 0
  return ({ type, data }) => {
    if (type === 'run.restarted') delayMs = typeof data['delayMs'] === 'number' ? data['delayMs'] : 0
    else if (type !== 'run.queued') delayMs = 0
    return { isSaid: true, delayMs }
  }
}

function waitFor({ progress }: Session, run: Run, status: string, facts?: WaitFacts): void {
  const isDelayed = status === 'queued' && facts !== undefined && facts.delayMs > 0
  const text = isDelayed ? `the next attempt begins in ${lengthText(facts.delayMs)}` : WAITING[status]
  if (text === undefined) progress.end()
  else progress.wait(text, hintFor(run, isDelayed ? 'delayed' : status), facts?.isSaid && !isDelayed)
}

/** What to type when that takes long. */
function hintFor(run: Run, status: string): string | undefined {
  const pool = run.pool.name
  switch (status) {
    case 'queued':
      return `No runner has taken it yet. windlass runners list --pool ${pool} shows which are online and how busy.`
    case 'awaiting_input':
      return `windlass inputs list --run ${run.id} shows what it asks.`
    case 'waiting_for_child':
    case 'sleeping':
    case 'blocked':
    case 'delayed':
      return `windlass runs why ${run.id} shows what it waits for.`
    default:
      return undefined
  }
}

async function tellEnd(
  session: Session,
  run: Run,
  { line, patienceMs }: FollowWishes,
  signal: AbortSignal,
): Promise<void> {
  const took = run.finishedAt === null ? '' : ` in ${lengthText(run.finishedAt - run.createdAt)}`
  if (run.status === 'completed') {
    note(paint('green', `✔ ${run.workflow.slug} completed${took}`))
    if (line !== undefined) return
    const read = () => session.client.runs.output({ run: run.id }, { signal })
    const { output } = await patiently(read, { signal, patienceMs, onReconnect: tellsLost(session) }).catch(
      (error: unknown) => {
        const what = `${run.id} has completed, but its output could not be read`
        throw begun(error, { what, next: `windlass runs output ${run.id}`, detail: { run: run.id } })
      },
    )
    print(json(output))
    return
  }
  const why = run.error ? safe(`: ${run.error.code}: ${run.error.message}`, process.stderr) : ''
  note(paint(run.status === 'failed' ? 'red' : 'yellow', `✖ ${run.workflow.slug} ${run.status}${took}${why}`))
  for (const line of stackLines(run)) note(paint('dim', line))
  note(`Next: windlass logs ${run.id}`)
}

const STACK_LINES = 5

/** Where the program threw, innermost first. */
function stackLines(run: Run): string[] {
  const stack = run.error?.detail?.['stack']
  if (typeof stack !== 'string') return []
  const frames = linesOf(stack).filter((line) => /^\s+at /.test(line))
  return frames.slice(0, STACK_LINES).map((line) => safe(line, process.stderr))
}

/** Ends the following on Ctrl-C, on SIGTERM and at the deadline, and says how to go on. */
function stopper(run: Run, timeoutMs: number | undefined) {
  const controller = new AbortController()
  const goOn = `windlass logs -f ${run.id} to follow it again, windlass runs cancel ${run.id} to end it`
  const interrupt = () =>
    controller.abort(new Failure(`No longer following; ${run.id} goes on.`, goOn, EXIT.interrupted, 'INTERRUPTED'))
  const expire = () =>
    controller.abort(new Failure(`${run.id} has not ended in time; it goes on.`, goOn, EXIT.unreachable, 'TIMED_OUT'))
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
  const forget = onLostOutput(({ what, exit, code }) => {
    const about = { code, detail: { run: run.id } }
    controller.abort(
      new Failure(`${what}: no longer following; ${run.id} goes on unless it has ended.`, goOn, exit, about),
    )
  })
  return {
    signal: controller.signal,
    over: () => {
      clearTimeout(timer)
      forget()
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
    },
  }
}
