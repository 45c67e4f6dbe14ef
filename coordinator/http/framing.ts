import { Fault } from '@windlass/shared/errors.ts'
import type { HttpRequest } from '../call/exchange.ts'

/**
 * Where a body ends that is framed in another way than these two is a guess, and whoever stands in front of us may have
 * guessed otherwise: the rest would be taken for a request of somebody else. Throws, and then the connection has to end.
 */
export function assertFraming({ headers }: HttpRequest): void {
  const length = headers['content-length']
  // A header that was sent twice comes as a list, which is no number.
  if (length !== undefined && !/^\d{1,15}$/.test(length))
    throw doubtful('content-length', 'Send one `Content-Length`, the number of bytes in the body.')
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw doubtful('transfer-encoding', 'Send `Transfer-Encoding: chunked`, or a `Content-Length` in its place.')
}

function doubtful(header: string, message: string): Fault {
  return new Fault('VALIDATION_FAILED', { path: '', header }, message)
}
