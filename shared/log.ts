import { dropping, type LogOut, standardOut } from './log-out.ts'

export type Level = 'debug' | 'info' | 'warn' | 'error'
export type Facts = Record<string, unknown>

/** `log('run.claimed', { runId, waitedMs })`: a fixed name, and facts as fields. Never a token, never a user's payload. */
export interface Log {
  (name: string, facts?: Facts): void
  debug(name: string, facts?: Facts): void
  warn(name: string, facts?: Facts): void
  error(name: string, facts?: Facts): void
}

/** As syslog and journald have them; a line that says none is info. */
const PRIORITY: Record<Level, string> = { debug: '<7>', info: '', warn: '<4>', error: '<3>' }
const RANK: Record<Level, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/**
 * JSON lines on `out` (stderr by default, so that stdout stays free for answers). `base` goes into every line. Lines
 * that cannot be written are dropped; `log.dropped` tells how many, when others can be. For journald each has its
 * priority before it, which is not stored with it.
 */
export function createLog(base: Facts, least: Level = 'info', out: LogOut = standardOut(2)): Log {
  const priority = (level: Level) => (out.isJournal ? PRIORITY[level] : '')
  const textOf = (level: Level, name: string, facts?: Facts) =>
    `${priority(level)}${JSON.stringify({ at: Date.now(), level, name, ...base, ...printable(facts) })}\n`
  const write = dropping(out, (gap) => textOf('warn', 'log.dropped', { ...gap }))
  const line = (level: Level, name: string, facts?: Facts) => {
    if (RANK[level] >= RANK[least]) write(textOf(level, name, facts))
  }
  return Object.assign((name: string, facts?: Facts) => line('info', name, facts), {
    debug: (name: string, facts?: Facts) => line('debug', name, facts),
    warn: (name: string, facts?: Facts) => line('warn', name, facts),
    error: (name: string, facts?: Facts) => line('error', name, facts),
  })
}

/**
 * Tells of an error that nobody catches before it ends the process. What Node itself writes of it then is lost where
 * stderr is a pipe that is full, and is never in the file of a log.
 */
export function watchUncaught(tell: (error: Error) => void): void {
  process.on('uncaughtExceptionMonitor', tell)
}

/** Errors have no enumerable fields, so JSON would print `{}` for them. */
function printable(facts: Facts | undefined): Facts | undefined {
  if (!facts?.error) return facts
  const { error } = facts
  return { ...facts, error: error instanceof Error ? (error.stack ?? error.message) : error }
}
