import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { BytesInFlight } from '../limits/bytes-in-flight.ts'
import type { Seats } from '../limits/seats.ts'
import { createSmallBodies, type SmallBodies } from '../limits/small-bodies.ts'
import { mostWithoutFiles, type Sizes } from '../sizes.ts'
import { ClientGone } from '../unforeseen.ts'
import { BYTES_OF_TEXT, SMALL_BYTES, TINY_BYTES } from '../call/body.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'
import type { Room } from '../call/room.ts'

/**
 * Deadline for a body: 64 MiB at 220 KB/s. A slower client would block others with bytes that it has not sent yet.
 */
const BODY_DEADLINE_MS = 300_000
/** As long as requests wait for a turn of their org. */
const PATIENCE_MS = 20_000
const TOO_LONG = 'Other large requests are under way, and have taken long. Send it again in a second.'

const MIB = 1024 * 1024

/**
 * A body of 64 KiB that is full of objects counts as 1.8 MB; a common one counts as 0.4 MB. Of the former 26 are values
 * at once, and 256 wait as texts.
 */
const SMALL = {
  values: { org: 48 * MIB, all: 192 * MIB },
  texts: { org: 16 * MIB, all: 64 * MIB },
  patienceMs: PATIENCE_MS,
}

export const smallBodies = (): SmallBodies => createSmallBodies(SMALL)

/** Whether the body may be one that is paced, and counted as it comes. */
export function mayBeLarge({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > SMALL_BYTES
}

/** Whether the body is known to be neither large nor tiny. */
export function isSmall({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return !mayBeLarge({ headers }) && Number(headers['content-length'] ?? 0) > TINY_BYTES
}

interface Bounds {
  bodies: BytesInFlight
  values: Seats
  small: SmallBodies
  config: Sizes
}

/** Room for a body that may be large. The caller releases it when nothing of the body is in memory any more. */
export function roomFor({ bodies, values, small, config }: Bounds, orgId: OrgId, response: HttpResponse): Room {
  const holding = bodies.hold(orgId)
  let leaveValues: (() => void) | undefined
  let isWhole = false
  const gone = new AbortController()
  const release = () => {
    holding.release()
    leaveValues?.()
  }
  response.once('abort', () => {
    gone.abort(new ClientGone())
    // What is still coming may never come to its end. What is whole is in memory until its caller is done with it.
    if (!isWhole) release()
  })
  return {
    orgId,
    announce: holding.announce,
    take: holding.take,
    whole: () => (isWhole = true),
    release,
    holdSmall: (bytes, memory) => {
      isWhole = true
      const onHeld = (leave: () => void) => (leaveValues = leave)
      return small.hold({ orgId, bytes, memory, gone: () => gone.signal, onHeld })
    },
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

function goneOf(response: HttpResponse): AbortSignal {
  if (response.completed) return AbortSignal.abort(new ClientGone())
  const gone = new AbortController()
  response.once('abort', () => gone.abort(new ClientGone()))
  return gone.signal
}

/** Room for a body that is small, of an org or `as` whoever is counted apart. */
export function smallRoomFor(small: SmallBodies, orgId: OrgId, response: HttpResponse, as: string = orgId): Room {
  let leave: (() => void) | undefined
  const uncounted = () => {}
  return {
    orgId,
    announce: uncounted,
    take: uncounted,
    whole: uncounted,
    release: () => leave?.(),
    holdValues: () => Promise.resolve(),
    holdSmall: (bytes, memory) =>
      small.hold({ orgId: as, bytes, memory, gone: () => goneOf(response), onHeld: (release) => (leave = release) }),
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
