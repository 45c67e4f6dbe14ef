import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { BytesInFlight } from '../limits/bytes-in-flight.ts'
import type { Seats } from '../limits/seats.ts'
import { mostWithoutFiles, type Sizes } from '../sizes.ts'
import { ClientGone, SMALL_BYTES } from '../call/body.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'
import type { Room } from '../call/room.ts'

/**
 * Deadline for a body: 64 MiB at 220 KB/s. A slower client would block others with bytes that it has not sent yet.
 */
const BODY_DEADLINE_MS = 300_000
/** As long as requests wait for a turn of their org. */
const PATIENCE_MS = 20_000
/** As it came, as values, as they are printed for the judge, and on their way to the database. */
const BYTES_OF_TEXT = 4
const TOO_LONG = 'Other large requests are under way, and have taken long. Send it again in a second.'

/** Whether the body may be larger than what is never counted. */
export function mayBeLarge({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > SMALL_BYTES
}

interface Bounds {
  bodies: BytesInFlight
  values: Seats
  config: Sizes
}

/** Room for a body that may be large. The caller releases it when nothing of the body is in memory any more. */
export function roomFor({ bodies, values, config }: Bounds, orgId: OrgId, response: HttpResponse): Room {
  const holding = bodies.hold(orgId)
  let leaveValues: (() => void) | undefined
  let isWhole = false
  const gone = new AbortController()
  const release = () => {
    holding.release()
    leaveValues?.()
  }
  response.once('abort', () => {
    gone.abort()
    // What is still coming may never come to its end. What is whole is in memory until its caller is done with it.
    if (!isWhole) release()
  })
  return {
    orgId,
    announce: holding.announce,
    take: holding.take,
    whole: () => (isWhole = true),
    release,
    async holdValues({ bytes, besideTexts }) {
      // The texts of files, and of many inputs, are counted by their bytes alone.
      const ofTexts = bytes > mostWithoutFiles(config) ? 0 : BYTES_OF_TEXT * bytes
      const leave = await values.takeInTime(orgId, PATIENCE_MS, besideTexts + ofTexts, gone.signal)
      if (gone.signal.aborted) {
        leave?.()
        throw new ClientGone()
      }
      if (!leave) throw new Fault('UNAVAILABLE', {}, TOO_LONG)
      leaveValues = leave
    },
  }
}

/** Reads a body that takes up room, in time. Throws ClientGone when its client has left already. */
export async function inTime<T>(response: HttpResponse, room: Room, read: (room: Room) => Promise<T>): Promise<T> {
  // A client that leaves while its credential is looked up is announced before anything here listens.
  if (response.completed) throw new ClientGone()
  const late = setTimeout(() => response.close(), BODY_DEADLINE_MS)
  response.once('abort', () => clearTimeout(late))
  try {
    return await read(room)
  } finally {
    clearTimeout(late)
  }
}
