import { execFile } from 'node:child_process'
import { url as inspectorUrl } from 'node:inspector'
import type { Log } from '@windlass/shared/log.ts'
import type { readSystemd } from './config.ts'

/** A supervisor looks as often; see deploy/start/part.ts. */
const BEAT_MS = 1000
/** Beats within systemd's limit: one may be lost. */
const BEATS_PER_WATCHDOG = 3

/**
 * Says that the event loop turns: to the supervisor that gave us a channel, and to systemd where its unit has
 * `WatchdogSec`. A supervisor that hears nothing kills this process and starts another. One that is being debugged
 * stands still on purpose.
 */
export function sayAlive(log: Log, systemd: ReturnType<typeof readSystemd>): void {
  if (process.send)
    setInterval(() => {
      // A channel that is closed has its own event, by which we stop.
      process.send?.({ alive: inspectorUrl() === undefined }, () => {})
    }, BEAT_MS).unref()
  if (!systemd) return
  const { watchdogMs } = systemd
  notify(log, ['READY=1'])
  // systemd drops the word of a process that has ended before it was read: being ready is said again with each.
  const alive = () => notify(log, ['READY=1', 'WATCHDOG=1'])
  if (watchdogMs !== null) setInterval(alive, watchdogMs / BEATS_PER_WATCHDOG).unref()
}

/** Node cannot open the datagram socket that systemd reads, so its own program does. */
function notify(log: Log, states: readonly string[]): void {
  execFile('systemd-notify', states, (error) => {
    if (error) log.warn('watchdog.unheard', { states, error })
  })
}
