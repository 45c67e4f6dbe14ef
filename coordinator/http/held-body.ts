import type { BytesInFlight } from '../limits/bytes-in-flight.ts'
import type { Seats } from '../limits/seats.ts'
import { mostWithoutFiles, type Sizes } from '../sizes.ts'
import { ClientGone } from '../call/body.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'
import type { Room } from '../call/room.ts'

/** Smaller bodies are neither counted nor paced. */
const SMALL_BYTES = 64 * 1024
/**
 * Deadline for a body: 64 MiB at 220 KB/s. A slower client would block others with bytes that it has not sent yet.
 */
const BODY_DEADLINE_MS = 300_000

/** Whether the body may be larger than what is never counted. */
export function mayBeLarge({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > SMALL_BYTES
}

interface Bounds {
  bodies: BytesInFlight
  seats: Seats
  config: Sizes
}

/** Room for a body that may be large. The caller releases it when nothing of the body is in memory any more. */
export function roomFor({ bodies, seats, config }: Bounds, orgId: string, response: HttpResponse): Room {
  const holding = bodies.hold(orgId)
  let leaveSeat: (() => void) | undefined
  let isReleased = false
  const leave = () => leaveSeat?.()
  const release = () => {
    isReleased = true
    holding.release()
    leave()
  }
  // A body whose client has gone may never come to its end, nor whoever waits for it.
  response.once('abort', release)
  return {
    announce: holding.announce,
    take: holding.take,
    release,
    leave,
    async seat(bytes) {
      if (bytes <= SMALL_BYTES) return
      leaveSeat = await seats.take(orgId)
      if (isReleased) {
        leave()
        throw new ClientGone()
      }
    },
    read(bytes) {
      // It holds files or inputs, in few values, and a wait for compiler or runs that nobody else is to wait for.
      if (bytes > mostWithoutFiles(config)) leave()
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
