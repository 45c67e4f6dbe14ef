import { keyOf } from '../idempotency/key.ts'
import { type Call, StatusAnswer } from './call.ts'

/** The idempotency key of a call, from its body or its header. */
export const keyIn = (call: Pick<Call<{ idempotencyKey?: string | undefined }>, 'input' | 'header'>) =>
  keyOf(call.input.idempotencyKey, call.header('idempotency-key'))

/** What another request has made before is answered with 200. */
export function made<T extends object>({ isNew, ...answer }: T & { isNew: boolean }) {
  return isNew ? answer : new StatusAnswer(200, answer)
}
