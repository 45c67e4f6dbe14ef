import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import { type AgentFrame, type CoordinatorFrame, WELCOME_MS } from '@windlass/shared/wire/agent.ts'
import type { Clock } from './clock.ts'
import type { Credential, FormerCredential, FormerCredentials } from './credential.ts'
import { CONNECT_MS, openSocket, OTHER_KEY_ADVICE } from './socket.ts'
import type { Refused, Socket, SocketEnd } from './socket.ts'

export interface LinkOptions {
  url: string
  credential: Credential
  formerCredentials: FormerCredentials
  clock: Clock
  /** Least pause after a refused credential. */
  refusedMs: number
  /** Longest pause between two tries. */
  mostPauseMs(): number
  log: Log
}

/** Whoever is at this end of each connection. */
export interface LinkListener {
  /** The first frame of each connection, made when it opens. */
  hello(): AgentFrame
  onFrame(frame: CoordinatorFrame): void
  onDown(): void
}

/** The agent's one WebSocket, dialled again whenever it is gone. */
export interface Link {
  /** True between `welcome` and the end of a connection. */
  readonly isReady: boolean
  /** Fires at the end of the connection that was welcomed last. */
  readonly down: AbortSignal
  /** False when there is no connection: the frame is dropped, and whoever needs it sends it again after `welcome`. */
  send(frame: AgentFrame): boolean
  /** The same for the text of entries; a promise when the caller should wait before it sends more. */
  sendEntries(text: string): Promise<void> | undefined
  /** Characters that a frame of entries should have at most, so that the line brings it in some seconds. */
  readonly frameChars: number
  /** Cuts the connection; the loop dials again unless it was stopped. */
  drop(reason: string): void
  /** Keeps the connection until the signal fires (answers nothing) or the coordinator refuses this agent for good. */
  keep(signal: AbortSignal, listener: LinkListener): Promise<Refused | undefined>
}

const FIRST_PAUSE_MS = 250
/** Of the first try after a good connection: where one of several coordinators stands still, the next is elsewhere. */
const FIRST_CONNECT_MS = 5_000
/** A connection that ends sooner after its welcome has not shown that the next one will hold. */
const STEADY_MS = 5000
/** After so many brief ones in a row the next try is within 4 s: a coordinator that answers is not left for longer. */
const MOST_BRIEF = 4

const SET_BACK = 'the database of the coordinator was set back to this former key, which the agent renews now'

export function createLink(options: LinkOptions): Link {
  const { log } = options
  let current: Socket | undefined
  let readyAt: number | undefined
  let down = new AbortController()

  const connect = async (
    signal: AbortSignal,
    listener: LinkListener,
    { former, connectMs }: { former: FormerCredential | undefined; connectMs: number },
  ): Promise<SocketEnd & { readyMs: number | undefined; offsetMs: number }> => {
    const { offsetMs } = options.clock
    const token = former?.token ?? (await options.credential())
    const onOpen = (socket: Socket) => void socket.send(JSON.stringify(listener.hello()), 'others')
    const onFrame = (frame: CoordinatorFrame, from: Socket) => {
      if (from !== current) return
      if (frame.t === 'welcome') {
        // Before anybody asks for anything.
        former?.serves()
        if (former) log.warn('key.former.serves', { advice: SET_BACK })
        down = new AbortController()
        readyAt = performance.now()
      }
      listener.onFrame(frame)
    }
    const socket = openSocket({ url: options.url, token, connectMs, onOpen, onFrame })
    current = socket
    const stopListening = closeOnAbort(socket, signal)
    // A coordinator that takes the connection and says nothing would keep us from trying another.
    const silence = setTimeout(() => readyAt ?? socket.close('no welcome'), WELCOME_MS)
    const end = await socket.ended
    clearTimeout(silence)
    stopListening()
    const readyMs = readyAt === undefined ? undefined : performance.now() - readyAt
    current = undefined
    readyAt = undefined
    down.abort()
    if (readyMs !== undefined) listener.onDown()
    return { ...end, readyMs, offsetMs }
  }

  return {
    get isReady() {
      return readyAt !== undefined
    },
    get down() {
      return down.signal
    },
    send(frame) {
      if (readyAt === undefined || !current) return false
      void current.send(JSON.stringify(frame), 'others')
      probe('frame.sent', { type: frame.t })
      return true
    },
    get frameChars() {
      return current?.frameChars ?? Infinity
    },
    sendEntries: (text) => current?.send(text, 'entries'),
    drop: (reason) => current?.close(reason),
    async keep(signal, listener) {
      let refusals = 0
      let connectMs = CONNECT_MS
      for (let failures = 0; !signal.aborted; failures++) {
        const former = isFormersTurn(refusals) ? await options.formerCredentials((refusals - 1) / 2) : undefined
        const end = await connect(signal, listener, { former, connectMs })
        if (end.why === 'refused') return end.frame
        if (signal.aborted) break
        failures = failuresBefore(failures, end.readyMs)
        connectMs = end.readyMs === undefined ? CONNECT_MS : FIRST_CONNECT_MS
        const { wasRefused, wasWrongTime } = judged(end, options.clock)
        refusals = end.readyMs === undefined ? refusals + Number(wasRefused) : 0
        const waitMs = (wasRefused ? options.refusedMs : 0) + pauseMs(failures, options.mostPauseMs())
        if (wasWrongTime) log.warn('clock.corrected', { offsetMs: options.clock.offsetMs, nextTryMs: waitMs })
        else tell(log, end, waitMs)
        await pause(waitMs, signal)
      }
      return undefined
    },
  }
}

/** Answers how to stop listening to the signal. */
function closeOnAbort(socket: Socket, signal: AbortSignal): () => void {
  const stop = () => socket.close('agent stops')
  signal.addEventListener('abort', stop, { once: true })
  // It may have fired while the token was made.
  if (signal.aborted) stop()
  return () => signal.removeEventListener('abort', stop)
}

/**
 * Wrong credentials rarely heal by themselves, but the database of a coordinator may be set back to a former key. Every
 * second try is with one of them: none is made for it that was not made anyway, and the present key is not left out.
 */
function isFormersTurn(refusals: number): boolean {
  return refusals % 2 === 1
}

const pauseMs = (failures: number, capMs: number) => backoffMs(failures, { firstMs: FIRST_PAUSE_MS, capMs })

/** How many failures in a row the next pause counts. `readyMs`: how long the connection served, if it ever did. */
function failuresBefore(failures: number, readyMs: number | undefined): number {
  if (readyMs === undefined) return failures
  return readyMs >= STEADY_MS ? 0 : Math.min(failures, MOST_BRIEF)
}

/** Whether the token was refused, and whether only for its time. */
function judged(end: SocketEnd & { offsetMs: number }, clock: Clock): { wasRefused: boolean; wasWrongTime: boolean } {
  if (end.why !== 'unauthenticated') return { wasRefused: false, wasWrongTime: false }
  clock.learnDate(end.date)
  // A poll may have set the clock right in between: the token was of the wrong time all the same.
  const wasWrongTime = clock.offsetMs !== end.offsetMs
  return { wasRefused: !wasWrongTime, wasWrongTime }
}

function tell(log: Log, end: Exclude<SocketEnd, { why: 'refused' }>, waitMs: number): void {
  if (end.why === 'closed') return log.warn('link.down', { reason: end.detail, nextTryMs: waitMs })
  const advice = `${end.isOtherKey ? OTHER_KEY : UNKNOWN} ${SET_BACK_ALONE}`
  log.error('link.unauthenticated', { reason: end.detail, advice, nextTryMs: waitMs })
}

const UNKNOWN =
  'the coordinator does not know this agent (any more): it was revoked, or WINDLASS_URL names another one.'
const OTHER_KEY = `the coordinator knows this runner by another key: ${OTHER_KEY_ADVICE}.`
const SET_BACK_ALONE = 'Where the database was set back, the agent finds the former key that serves by itself'
