import { randomBytes } from 'node:crypto'
import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../db/client.ts'
import { LIVE_PAGE, type LiveLog } from './live.ts'
import { LogPage, sseFrame } from './page.ts'
import type { StoredEvent } from './store.ts'
import * as store from './store-org-log.ts'

/** Events that are given positions, or taken away, in one statement. */
const BATCH = 1000
/** More than comes in an hour. */
const MOST_BATCHES = 20_000
/** Statements under way are waited for when a log begins. Each of ours takes milliseconds, and 30 s at most. */
const WHOLE_AFTER_MS = 10_000
const LOOK_MS = 50

export interface OrgLogs {
  /**
   * The log has everything that is committed from here on; its position is the end of what was committed before. Throws
   * a `Fault` when the database does not let it begin in time.
   */
  open(orgId: OrgId): Promise<store.OrgLogPosition>
  live(orgId: OrgId, series: string): LiveLog
}

export function createOrgLogs(db: Db): OrgLogs {
  const opening = new Map<OrgId, Promise<store.OrgLogPosition>>()
  return {
    // Readers that come meanwhile share the opening: looking for writers is dear.
    open(orgId) {
      const known = opening.get(orgId)
      if (known) return known
      const opened = openLog(db, orgId).finally(() => opening.delete(orgId))
      opening.set(orgId, opened)
      return opened
    },
    live: (orgId, series) => orgLog(db, orgId, series),
  }
}

async function openLog(db: Db, orgId: OrgId): Promise<store.OrgLogPosition> {
  const log = await store.keep(db, orgId, randomBytes(6).toString('hex'))
  if (!log.isWhole) {
    await untilWritten(db)
    await store.noteWhole(db, orgId)
  }
  return { ...log, position: await giveAll(db, orgId) }
}

/**
 * Waits for all who may have looked before the log was there. Statements take the lock of their table before they look
 * at anything, so whoever takes it later sees the log.
 */
async function untilWritten(db: Db): Promise<void> {
  const end = performance.now() + WHOLE_AFTER_MS
  let left = new Set(await store.writers(db))
  while (left.size > 0) {
    if (performance.now() > end)
      throw new Fault('UNAVAILABLE', {}, 'The database is writing runs for longer than usual; open the stream again.')
    await pause(LOOK_MS)
    const now = await store.writers(db)
    left = new Set(now.filter((writer) => left.has(writer)))
  }
}

function orgLog(db: Db, orgId: OrgId, series: string): LiveLog {
  return {
    id: orgId,
    orgId,
    async after(since) {
      const found = await store.state(db, orgId)
      if (!found || found.isOver || found.series !== series) return { page: new LogPage([]), end: 0, isOver: true }
      if (found.endsSoon) await store.putOff(db, orgId)
      const end = found.isBehind ? await giveAll(db, orgId) : found.position
      const rows = since < end ? await store.after(db, orgId, { since, ...LIVE_PAGE }) : []
      // Positions follow one upon the other. What is missing has been taken away, maybe only after the look at the log.
      const isGap = since < end && rows[0]?.position !== since + 1
      const goneTo = isGap ? await store.goneTo(db, orgId) : found.goneTo
      const print = ({ type, dataText, cursor }: StoredEvent) => sseFrame(type, dataText, `${series}.${cursor}`)
      return { page: new LogPage(rows.map(eventOf), print), end, isOver: false, goneTo }
    },
  }
}

/** Its cursor is the position, and its data all that a reader gets. */
function eventOf(row: store.OrgEventRow): StoredEvent {
  const { position, at, type, run, workflow, cursor, data } = row
  const names = JSON.stringify({ at, type, run, workflow, cursor })
  return { cursor: position, at, channel: 'lifecycle', type, dataText: `${names.slice(0, -1)},"data":${data}}` }
}

/** Answers the last position. Another coordinator may give some as well: what counts is where the log stands then. */
async function giveAll(db: Db, orgId: OrgId): Promise<number> {
  for (let i = 0; ; i++) {
    const { given, last } = await store.givePositions(db, orgId, BATCH)
    if (given < BATCH || i > MOST_BATCHES) return last
  }
}

/** Takes away what nobody can come back to. */
export async function cleanOrgLogs({ db, log }: { db: Db; log: Log }): Promise<void> {
  for (const orgId of await store.orgsWithLogs(db))
    await cleanOrgLog(db, orgId).catch((error: unknown) => log.warn('orgLog.clean.failed', { orgId, error }))
}

async function cleanOrgLog(db: Db, orgId: OrgId): Promise<void> {
  // What nobody has read has no position yet, and is found by none.
  await giveAll(db, orgId)
  for (let i = 0; i < MOST_BATCHES && (await store.clean(db, orgId, BATCH)); i++);
}
