import path from 'node:path'
import type { RunErrorCode } from '@windlass/shared/errors.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type {
  FrameName,
  IdleReport,
  JournalMessage,
  LogData,
  ProgramMessage,
  ResendMessage,
  StartMessage,
} from '@windlass/shared/wire/program.ts'
import { provideRuntime, type Runtime } from '../bridge.ts'
import type { Engine } from '../engine/port.ts'
import { createCallers } from './callers.ts'
import { routeConsole } from './console-routing.ts'
import { onAgentGone, sendFrame } from './frames.ts'
import { loadEngine, openEngine } from './journal.ts'
import { loadRun, provideSdk } from './load.ts'
import { holdOn, nextMessage, watchMessages } from './messages.ts'
import { lossOf, outcomeText, ofThrown, ofValue, type Outcome } from './outcome.ts'
import { openSession, type Session } from './session.ts'
import { rejoin } from './rejoin.ts'
import { mapStacks } from './stacks.ts'
import { rememberSurroundings } from './surroundings.ts'
import { unrefOurs } from './unrefed.ts'

// The process that an agent starts for a program. Every millisecond here is paid by every run, so what is seldom needed
// is loaded when it is needed.

// Short runs do not pay for the watch, and of what the agent says in the first moment they hear a little later: a
// cancel, or a token. What waits watches from its first call on.
const WATCH_AFTER_MS = 200
/** Whether the steps of a program have ended that has ended itself. */
const STEPS_LOOK_MS = 20
// The program may put another in its place.
const later = setTimeout
const SDK_FILE = path.join(__dirname, 'windlass.mjs')

// Between runs, where only what a run has left behind still speaks.
const EVENT_DATA_BYTES = 62 * 1024
const MOST_STRAYS = 20

const callers = createCallers()
const runtime: Runtime = {
  get context() {
    return session && callers.isFrom(session) ? session.context : null
  },
  emit: say,
  get eventDataBytes() {
    return teller?.start.eventDataBytes ?? EVENT_DATA_BYTES
  },
  waits: () => session && (callers.isFrom(session) ? journalOf(session) : stray('a call')),
}
let session: Session | undefined
/** Whose frames stand in the pipe; also when it has ended, until it is nobody's turn. */
let teller: Session | undefined
let hasServed = false
/** Of the run that comes next. */
const recorded: JournalRecord[][] = []
/** What former runs have tried to say, or to do, since the present one began. */
const strays = new Set<string>()

provideRuntime(runtime)
provideSdk(SDK_FILE)
routeConsole(say)
onAgentGone(onGone)
// Agents of before send it to be heard sooner; one that took this process over may be such a one.
process.on('SIGUSR2', watch)
process.on('uncaughtException', (error) => unlessHandled('uncaughtException', error))
process.on('unhandledRejection', (reason) => unlessHandled('unhandledRejection', reason))
tellUnlessWaiting()
const surroundings = rememberSurroundings()

if (process.argv[2] === 'spare') {
  require(SDK_FILE)
  loadEngine(__dirname)
}
// One in a pid namespace is given nothing before it has spoken, when its agent learns how to end all that is in there.
if (process.argv[2] !== 'now') sendFrame('ready')
receiveNext()

function receiveNext(): void {
  for (;;) {
    const message = nextMessage()
    if (!message) return holdOn(true)
    receive(message)
    if (message.t === 'start') return
  }
}

function receive(message: ProgramMessage): void {
  if (message.t === 'start') void begin(message)
  else if (message.t === 'journal') recorded.push(message.records)
  else if (session && message.t !== 'resend') {
    const own = session
    callers.as(own, () => hear(own, message))
  }
}

/** A word of a program counts as one of the run in progress only when it comes from there. */
function say(name: FrameName, payload: string | Uint8Array): void {
  // The next run may be on its way already, and would be given it.
  if (!teller && hasServed) process.reallyExit(1)
  if (!teller || callers.isFrom(teller)) sendFrame(name, payload)
  else stray(name)
}

function stray(what: string): undefined {
  if (strays.size < MOST_STRAYS) strays.add(`${what} of ${callers.name()}`)
}

/** Without a run there is nothing that another agent could come for. */
function onGone(): void {
  if (!teller) return process.reallyExit(1)
  const isWatching = session !== undefined
  rejoin(teller)
  if (isWatching) watch()
}

function watch(): void {
  watchMessages(receive, onGone)
}

function hear(own: Session, message: Exclude<ProgramMessage, JournalMessage | StartMessage | ResendMessage>): void {
  if (message.t === 'cancel') own.stop(message)
  else if (message.t === 'token') own.token = message.token
  else if (message.t === 'kept') own.engine?.confirm(message.count)
  else {
    own.heard += 1
    journalOf(own).wake(message.completions)
  }
}

/** Whoever waits has to hear: from now on messages come through the loop. */
function journalOf(own: Session): Engine {
  if (own.engine) return own.engine
  watch()
  own.engine = openEngine(own, __dirname)
  if (own.handover) own.engine.handOver(own.handover)
  if (own.stopped) own.engine.stop(own.stopped, own.patienceMs)
  return own.engine
}

async function begin(start: StartMessage): Promise<void> {
  const own = openSession(start, recorded.splice(0).flat())
  session = teller = own
  hasServed = true
  holdOn(false)
  sendFrame('begun')
  const watching = setTimeout(watch, WATCH_AFTER_MS)
  unrefOurs(watching)
  const outcome = await callers.as(own, () => execute(own))
  clearTimeout(watching)
  // What comes while its last calls are committed has not moved it to return.
  const isEnd = isItsEnd(own, outcome)
  if ('returned' in outcome && own.engine) await own.engine.answered()
  finish(own, outcome, isEnd)
}

async function execute(own: Session): Promise<Outcome> {
  const { start, context } = own
  try {
    surroundings.enter(start)
    own.site = mapStacks(start.bundleFile, __dirname)
    if (start.replay) journalOf(own)
    const run = await loadRun(start.bundleFile)
    const value = await run(JSON.parse(start.inputText), context)
    const outcome = ofValue(value, start.outputBytes)
    const loss = 'returned' in outcome ? lossOf(value, outcome) : undefined
    if (loss !== undefined) sendFrame('log', JSON.stringify({ text: loss, level: 'warn' } satisfies LogData))
    return outcome
  } catch (error) {
    return ofThrown(error, own.engine)
  }
}

/** A run ends once: the first outcome is the one that counts. */
function finish(own: Session, outcome: Outcome, isEnd = false): void {
  if (session !== own) return
  if (!isEnd && !isItsEnd(own, outcome)) return leaveLater(own, outcome)
  if (own.engine?.end(outcomeText(outcome), 'threw' in outcome) === false) return
  session = undefined
  if (process.moduleLoadList.includes('NativeModule child_process')) sendFrame('children')
  if ('returned' in outcome) sendFrame('returned', outcome.returned)
  else sendFrame('threw', JSON.stringify(outcome.threw))
  if (own.start.stays) setImmediate(rest)
  else leave()
}

/** What its steps come to has been paid for. They have the grace, and somebody may cancel the run after all. */
function leaveLater(own: Session, outcome: Outcome): void {
  own.hasEnded = true
  if (!own.engine?.isExecuting()) return leave()
  unrefOurs(later(() => finish(own, outcome), STEPS_LOOK_MS))
}

/** False: it may have come of the stop of the agent, or of what that withholds, and the run goes on elsewhere. */
function isItsEnd({ handover, stopped, engine }: Session, outcome: Outcome): boolean {
  if (!handover || stopped !== undefined) return true
  return 'returned' in outcome && !handover() && !engine?.lacksFailure()
}

/** Whatever is still open, the run is over. `exit` listeners are the program's last word. */
function leave(): void {
  // Taking down a whole V8 in good order costs milliseconds, and nothing here is worth it.
  process.reallyExit = () => process.kill(process.pid, 'SIGKILL') as never
  process.exit()
}

/** One more turn of the loop, so that what the program has just closed is really closed. */
function rest(): void {
  setImmediate(() => {
    const leftovers = surroundings.leftovers()
    surroundings.restore()
    teller = undefined
    sendFrame('idle', JSON.stringify({ leftovers, strays: [...strays] } satisfies IdleReport))
    strays.clear()
    receiveNext()
  })
}

/** A program that listens itself has taken the matter into its own hands, as in any Node process. */
function unlessHandled(event: 'uncaughtException' | 'unhandledRejection', error: unknown): void {
  if (process.listenerCount(event) > 1) return
  // Between two runs there is nobody to tell; a process in such a state serves no other run.
  if (!session) process.reallyExit(1)
  if (callers.isFromOther(session)) stray('an error')
  else finish(session, ofThrown(error, session.engine))
}

/** A program that waits with us has not come to its end: libraries that clean up then would end the process. */
function tellUnlessWaiting(): void {
  const emit = process.emit.bind(process) as (event: string | symbol, ...args: unknown[]) => boolean
  process.emit = ((event: string | symbol, ...args: unknown[]) => {
    if (event === 'beforeExit' && session?.engine?.idle()) return true
    const isHeard = emit(event, ...args)
    if (event === 'beforeExit' && !isHeard) onNothingLeft()
    return isHeard
  }) as typeof process.emit
}

function onNothingLeft(): void {
  if (!session) return
  // Where the run goes on elsewhere, its steps have nothing to do any more either.
  if (session.handover && !session.stopped) return leave()
  const message =
    'run() waits for something that can never happen: its promise is open, and no timer, socket or file is left.'
  const code: RunErrorCode = 'RUN_NEVER_SETTLED'
  finish(session, { threw: { name: 'Error', code, message } })
}
