import type { ApiError } from './api-error.ts'

/** Whether a request may have been done though this is all that was heard of it. */
export function isUnsure({ status, code, detail, cause }: ApiError): boolean {
  if (status === 0) return wasSent(cause)
  // The service says that it is sure: nothing was begun, or all of it was taken back.
  if (detail?.['mayBeDone'] === false) return false
  const isAnswered = status >= 300 && status < 500
  return !isAnswered && code !== 'SECRETS_UNAVAILABLE'
}

const LOST: readonly string[] = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT']
/** Of undici, of its HTTP parser and of what unpacks a body: a connection was there, or half of an answer. */
const LOST_KINDS = /^(?:UND_ERR_(?!CONNECT_TIMEOUT)|HPE_|Z_)/
/** Node's words of a connection that ended before anything could be sent over it: only they tell it from others. */
const NO_TLS = /before secure TLS connection was established/

/** Whether the request went out, for all that its error tells: its connection was lost, or its answer took too long. */
export function wasSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error.name === 'AbortError') return true
  const { code, syscall, message } = (error.cause ?? {}) as { code?: unknown; syscall?: unknown; message?: unknown }
  // Attempts to connect to several addresses are an aggregate.
  if (typeof code !== 'string' || syscall === 'connect' || error.cause instanceof AggregateError) return false
  if (NO_TLS.test(String(message))) return false
  return LOST.includes(code) || LOST_KINDS.test(code)
}
