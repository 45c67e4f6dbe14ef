import type { HttpResponse } from '../call/exchange.ts'

/**
 * µWS closes a connection of which its reader takes nothing for 10 s, by a clock that ticks every 4 s: 8 to 12 s. On a
 * slow line the kernel alone holds as much as is taken in that time.
 */
const ANEW_MS = 3000

/**
 * For how long the reader of an answer may take nothing is up to whoever sends it, piece by piece, and not to µWS.
 * Answers what ends that; with the answer it ends by itself.
 */
export function outwait(response: HttpResponse): () => void {
  const timer = setInterval(() => {
    if (response.completed) return clearInterval(timer)
    // Begins the time anew. Both at once: a pause keeps what the socket waits for, in a place that all sockets share.
    response.raw.pause()
    response.raw.resume()
  }, ANEW_MS)
  return () => clearInterval(timer)
}
