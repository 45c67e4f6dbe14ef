import type { Log } from '@windlass/shared/log.ts'
import { type Db, openPgPool } from '../db/client.ts'
import { createLimits, type Limits } from './limits.ts'
import { createUnreadBytes, type UnreadBytes } from './unread-bytes.ts'
import { createDraws, removeOldWindows } from './store.ts'

const WINDOW_MS = 60_000
/** Draws are short; a second lets one bucket draw while another waits for its row. */
const CONNECTIONS = 2
/** A caller waits no longer than this for the store. */
const PATIENCE_MS = 500

export interface OpenLimitsOptions {
  url: string
  identity: number
  org: number
  /** Verified deliveries that a webhook or connection may have in a window; 0: no limit. */
  deliveries?: number
  log: Log
  /** Of a test; else a minute. */
  windowMs?: number
  /** The same; else half a second. */
  patienceMs?: number
}

/** The limits of this coordinator, with connections of their own: neither jobs nor callers keep a draw waiting. */
export function openLimits(options: OpenLimitsOptions): {
  limits: Limits
  deliveryLimits: Limits
  unread: UnreadBytes
  /** Apart from the others: with a key that may only read nobody has journals cut. */
  unreadJournals: UnreadBytes
  close: () => Promise<void>
} {
  const { url, identity, org, deliveries = 0, log, windowMs = WINDOW_MS, patienceMs = PATIENCE_MS } = options
  const pool = openPgPool(url, { name: 'limits', max: CONNECTIONS, log, queryTimeoutMs: patienceMs })
  const draws = createDraws({ pool, windowMs, patienceMs, log })
  const limits = createLimits({ identity, org, windowMs, draws })
  const deliveryLimits = createLimits({ identity: deliveries, org: 0, windowMs, draws })
  return {
    limits,
    deliveryLimits,
    unread: createUnreadBytes({ log }),
    unreadJournals: createUnreadBytes({ log, of: 'journal' }),
    close: () => pool.end(),
  }
}

export function cleanWindows({ db }: { db: Db }): Promise<void> {
  return removeOldWindows(db)
}
