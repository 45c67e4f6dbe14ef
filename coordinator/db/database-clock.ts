import { uptime } from 'node:os'
import type { Log } from '@windlass/shared/log.ts'
import type { Db } from './client.ts'

/**
 * What the clock of the database shows, as far as it has told. Times in it are compared with this: the clock of this
 * machine may be wrong, from the start on or from some moment, and other coordinators have others.
 */
export interface DatabaseClock {
  /** Milliseconds since the epoch, whole ones. */
  now(): number
  /** How far the clock of this machine is ahead of it; negative: behind. */
  aheadMs(): number
  /** The database is about to be asked. Answers what is to be told the time that it said meanwhile. */
  look(): (now: number) => void
}

/** Beyond this it is said, and once more when it has changed by as much. */
const MOST_MS = 5000

const ADVICE =
  'Set both by NTP. Times are those of the database. By this clock ids of runs are made, and agents sign: ' +
  'of several coordinators, those whose clocks are apart refuse them now and then.'

export async function openDatabaseClock({ db, log }: { db: Db; log: Log }): Promise<DatabaseClock> {
  const clock = createDatabaseClock(log)
  const learn = clock.look()
  const [row] = await db<[{ now: number }]>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as now`
  learn(row.now)
  return clock
}

/** Knows nothing before it has learned a time. */
export function createDatabaseClock(log: Log, steady: () => number = createSteady()): DatabaseClock {
  /** How far the clock of the database is ahead of the steady one is between these. */
  let [least, most] = [-Infinity, Infinity]
  let saidMs = 0

  const time = () => steady() + (least + most) / 2
  const aheadMs = () => Date.now() - time()

  function tell(): void {
    const ahead = aheadMs()
    const surelyMs = Math.abs(ahead) - (most - least) / 2
    if (surelyMs > MOST_MS && Math.abs(ahead - saidMs) > MOST_MS) {
      saidMs = ahead
      log.warn('clock.differs', { aheadMs: Math.round(ahead), advice: ADVICE })
    } else if (saidMs !== 0 && surelyMs < MOST_MS / 2) {
      saidMs = 0
      log('clock.agrees', { aheadMs: Math.round(ahead) })
    }
  }

  return {
    now: () => Math.floor(time()),
    aheadMs,
    look() {
      const askedAt = steady()
      return (now) => {
        const [from, to] = [now - steady(), now - askedAt]
        // An answer that was long on its way says little, but does not contradict what is known better.
        const isAsKnown = from <= most && to >= least
        ;[least, most] = isAsKnown ? [Math.max(least, from), Math.min(most, to)] : [from, to]
        tell()
      }
    },
  }
}

/** A smaller difference is none: clocks are slewed. */
const NOISE_MS = 1000

/**
 * Runs on evenly, whatever this machine's clock is set to. The monotonic clock stands still while the machine sleeps,
 * so that is added: when both are apart, the time since boot tells which it was. Where that goes by the clock, as on
 * macOS, a clock that is set forward is taken for sleep until the database is asked the next time.
 */
export function createSteady(sinceBoot: () => number = () => uptime() * 1000): () => number {
  let lag = Date.now() - performance.now()
  let bootLag = sinceBoot() - performance.now()
  let sleptMs = 0
  return () => {
    const ticks = performance.now()
    if (Math.abs(Date.now() - ticks - lag) > NOISE_MS) {
      const moreMs = sinceBoot() - ticks - bootLag
      if (moreMs > NOISE_MS) sleptMs += moreMs
      bootLag += moreMs
      lag = Date.now() - ticks
    }
    return ticks + sleptMs
  }
}
