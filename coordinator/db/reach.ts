import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { type Database, openDatabase, type DatabaseOptions } from './client.ts'
import type { Lanes } from './lanes.ts'

/**
 * Whether anything answers this coordinator where its database is. One that hears nothing refuses agents at once, so
 * that they go to one that does: a try that waits for the database costs them up to 10 s of the 50 s after which they
 * end their runs. A database that refuses is not away: it tells whoever asks at once, and it refuses all coordinators.
 */
export interface Reach {
  /** Throws UNAVAILABLE while the database is away. */
  assert(): void
  /** Calls the listener once while the database is away, a few listeners at a time. Returns what stops that. */
  onAway(listener: () => void): () => void
  /** Looks until the signal fires. */
  run(signal: AbortSignal): Promise<void>
}

const LOOK_MS = 1000
/** After a look without an answer the next one comes soon: agents are to be taken as soon as the database is back. */
const AGAIN_MS = 250
/** Two lost packets have been sent again by then. */
const AWAY_MS = 2000
/** A connection that says nothing is given up 3 s after this, and the next look opens another one. */
const STATEMENT_MS = 1000
const CONNECT_S = 5
/** With too few sessions of a pooler it goes on for good; a connection that was dropped is opened anew. */
const FEW_LOOKS = 3
/** An agent that is let go connects elsewhere within 250 ms. 400 a second are what another coordinator takes easily. */
const MOST_AT_ONCE = 40
const TELL_MS = 100

export interface ReachOptions {
  log: Log
  /** Asks the database by a connection that nobody else uses. */
  look: () => Promise<unknown>
  /** Asks it by connections that agents need. */
  ask: () => Promise<unknown>
  /** Connections that this coordinator opens at most. */
  wanted: number
  now?: () => number
}

export type Looks = Reach & { lookOnce(): Promise<void> }

/** Looks in a row without an answer. `ms` is what they have waited, without what the process stood still in between. */
interface Silence {
  since: number
  looks: number
  ms: number
  isHeardElsewhere: boolean
}

export function createReach({ log, look, ask, wanted, now = () => performance.now() }: ReachOptions): Looks {
  let silence: Silence | undefined
  let isAway = false
  let isAsking = false
  const few = watchSessions(log, wanted)
  const waiting = createWaiting(() => isAway)

  function heard(): void {
    if (isAway) log('database.heard', { awayMs: Math.round(now() - silence!.since) })
    silence = undefined
    isAway = false
  }

  function heardNothing(begunAt: number, error: unknown): void {
    silence ??= { since: begunAt, looks: 0, ms: 0, isHeardElsewhere: false }
    silence.looks += 1
    silence.ms += Math.max(AGAIN_MS, now() - begunAt)
    if (silence.isHeardElsewhere) return heard()
    void askOthers()
    if (isAway || silence.looks < 2 || silence.ms <= AWAY_MS) return
    isAway = true
    log.warn('database.away', { sinceMs: Math.round(now() - silence.since), error })
    void waiting.tell()
  }

  /** A pooler whose sessions are all taken lets a new one wait, while those that it has lent work. */
  async function askOthers(): Promise<void> {
    if (isAsking) return
    isAsking = true
    const heardElsewhere = await outcomeOf(ask)
    isAsking = false
    if (heardElsewhere === 'silence' || !silence) return
    silence.isHeardElsewhere = true
    if (heardElsewhere === 'answer') few.unanswered()
  }

  async function lookOnce(): Promise<void> {
    const begunAt = now()
    try {
      await look()
      heard()
      few.answered()
    } catch (error) {
      // Where the process stood still, the answer that others wait for may have come, and is read by then.
      await setImmediate()
      if (isSilence(error)) heardNothing(begunAt, error)
      else heard()
    }
    probe('database.looked', { isAway })
  }

  return {
    lookOnce,
    assert() {
      if (isAway) throw new Fault('UNAVAILABLE')
    },
    onAway(listener) {
      const stop = waiting.add(listener)
      if (isAway) void waiting.tell()
      return stop
    },
    async run(signal) {
      while (!signal.aborted) {
        await lookOnce()
        await delay(silence ? AGAIN_MS : LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined)
      }
    },
  }
}

/** Those who wait to be told that the database is away. */
function createWaiting(isAway: () => boolean) {
  const listeners = new Set<() => void>()
  let isTelling = false
  return {
    add(listener: () => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    async tell(): Promise<void> {
      if (isTelling) return
      isTelling = true
      while (listeners.size > 0 && isAway()) {
        for (const listener of [...listeners].slice(0, MOST_AT_ONCE)) {
          listeners.delete(listener)
          listener()
        }
        await delay(TELL_MS, undefined, { ref: false })
      }
      isTelling = false
    },
  }
}

/** Whether one connection is alone without an answer time and again: a pooler lends no further one. */
function watchSessions(log: Log, wanted: number) {
  let inARow = 0
  return {
    answered: () => void (inARow = 0),
    unanswered() {
      if (++inARow !== FEW_LOOKS) return
      log.warn('database.connections.few', {
        wanted,
        reason: 'a connection to the database has no answer again and again, while others have',
        advice:
          `give the pool of a pooler (\`default_pool_size\` of PgBouncer) ${wanted} sessions for each coordinator; ` +
          'without one, see what drops connections between here and the database',
      })
    },
  }
}

export type ReachNeeds = Pick<DatabaseOptions, 'url' | 'log'> & {
  /** Connections of heartbeats: nothing is away that answers these. */
  beats: Pick<Lanes, 'run'>
  /** Connections that this coordinator opens at most. */
  wanted: number
  connectTimeoutS?: number
}

/** Looks by a connection of its own: those that work take turns with statements that may be slow. */
export function openReach({
  url,
  log,
  beats,
  wanted,
  connectTimeoutS = CONNECT_S,
}: ReachNeeds): Reach & Pick<Database, 'close'> {
  const database = openDatabase({ url, log, max: 1, statementTimeoutMs: STATEMENT_MS, connectTimeoutS })
  const look = () => database.db`select 1`
  const ask = () => beats.run((lane) => lane`select 1`)
  return { ...createReach({ log, look, ask, wanted }), close: () => database.close() }
}

async function outcomeOf(ask: () => Promise<unknown>): Promise<'answer' | 'refusal' | 'silence'> {
  try {
    await ask()
    return 'answer'
  } catch (error) {
    return isSilence(error) ? 'silence' : 'refusal'
  }
}

/** No packet came back, or there is no way to send one. Everything else was said by somebody. */
const SILENCES = new Set([
  'CONNECT_TIMEOUT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EAI_AGAIN',
])

function isSilence(error: unknown): boolean {
  return error instanceof Error && 'code' in error && SILENCES.has(String(error.code))
}
