import type { BytesInFlight, Holding } from '../limits/bytes-in-flight.ts'
import { ClientGone, type Room } from './body.ts'
import type { HttpResponse } from './exchange.ts'

/**
 * Deadline for a body: 64 MiB at 220 KB/s. A slower client would block others with bytes that it has not sent yet.
 */
const BODY_DEADLINE_MS = 300_000

/** Room for a body that may be large. The caller releases it when nothing of the body is in memory any more. */
export function roomFor(inFlight: BytesInFlight, orgId: string, response: HttpResponse): Holding {
  const holding = inFlight.hold(orgId)
  // A body whose client has gone may never come to its end, nor whoever waits for it.
  response.once('abort', holding.release)
  return holding
}

/** Reads a body that takes up room, in time. Throws ClientGone when its client has left already. */
export async function inTime<T>(response: HttpResponse, room: Holding, read: (room: Room) => Promise<T>): Promise<T> {
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
