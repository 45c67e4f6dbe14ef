import { firstIdAt, type IdPrefix } from '@windlass/shared/ids.ts'
import type { Sql } from './client.ts'

/** An id has the clock of a coordinator, a column the database's: they are not so far apart, nor does a commit take so long. */
const SKEW_MS = 3_600_000
/** What the time of an id can say: up to the year 10,889. PostgreSQL's calendar goes on for longer. */
const LAST_MS = 2 ** 48 - 1

/** A moment that ids and PostgreSQL have too, in milliseconds: nothing of ours is from before 1970. */
const calendarMs = (ms: number) => Math.min(Math.max(0, ms), LAST_MS)

/** Between which ids all rows are that are older than one, and from a span of time; rows up to an hour away from it are there too. */
export function idBounds(
  prefix: IdPrefix,
  of: { before?: string | undefined; since?: number | undefined; until?: number | undefined },
) {
  const at = (ms: number) => firstIdAt(prefix, calendarMs(ms))
  const ends = [of.before, of.until === undefined ? undefined : at(of.until + SKEW_MS)]
  return {
    after: of.since === undefined ? undefined : at(of.since - SKEW_MS),
    // Ids are of one length and of plain characters: they sort here as they do in the database.
    before: ends.filter((id) => id !== undefined).toSorted()[0],
  }
}

/** The beginning of a millisecond; columns count in microseconds. */
export const instant = (sql: Sql, ms: number) => sql`to_timestamp(${calendarMs(ms)}::float8 / 1000)`
