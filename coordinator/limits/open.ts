import type { Log } from '@windlass/shared/log.ts'
import { type Db, openPgPool } from '../db/client.ts'
import { createLimits, type Limits } from './limits.ts'
import { createUnreadBytes, type UnreadBytes } from './unread-bytes.ts'
import { createDraws, PATIENCE_MS, removeOldWindows } from './store.ts'

const WINDOW_MS = 60_000
/** Draws are short; a second lets one bucket draw while another waits for its row. */
const CONNECTIONS = 2

export interface OpenLimitsOptions {
  url: string
  identity: number
  org: number
  log: Log
  /** Of a test; else a minute. */
  windowMs?: number
}

/** The limits of this coordinator, with connections of their own: neither jobs nor callers keep a draw waiting. */
export function openLimits({ url, identity, org, log, windowMs = WINDOW_MS }: OpenLimitsOptions): {
  limits: Limits
  unread: UnreadBytes
  close: () => Promise<void>
} {
  const pool = openPgPool(url, { name: 'limits', max: CONNECTIONS, log, queryTimeoutMs: PATIENCE_MS })
  const limits = createLimits({ identity, org, windowMs, draws: createDraws({ pool, windowMs, log }) })
  return { limits, unread: createUnreadBytes({ log }), close: () => pool.end() }
}

export function cleanWindows({ db }: { db: Db }): Promise<void> {
  return removeOldWindows(db)
}
