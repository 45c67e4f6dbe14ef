/**
 * What a run gets that a delivery of a connection has started. `P` is what the provider sends.
 *
 * @example
 * import type { ConnectionEvent } from 'windlass'
 *
 * export async function run({ event, payload }: ConnectionEvent<{ ref: string }>) {
 *   return `${event} of ${payload.ref}`
 * }
 */
export interface ConnectionEvent<P = unknown> {
  /** Name of the connection. */
  connection: string
  /** What happened, as the provider calls it: `pull_request.opened`. Null where it does not say. */
  event: string | null
  /** What the provider calls the delivery. Null where it has no id. */
  id: string | null
  /** The body: JSON as it was sent, a form as an object, text as `{ text }`. */
  payload: P
  /** By lower-case name; credentials are `[redacted]`. */
  headers: Record<string, string>
  /** When it first came in, in milliseconds since the Unix epoch. */
  receivedAt: number
}
