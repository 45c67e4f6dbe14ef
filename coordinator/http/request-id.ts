import { newId } from '@windlass/shared/ids.ts'

const COUNTER_DIGITS = 6
const COUNTER_END = 32 ** COUNTER_DIGITS

let start = ''
let count = COUNTER_END

/** The caller's own id when it is harmless in logs and headers, else a new one. */
export function requestIdOf(given: string | undefined): string {
  return given !== undefined && /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : nextRequestId()
}

/** An id whose end counts up: fresh random bytes for every request would cost as much as the rest of its way through here. */
function nextRequestId(): string {
  if (count === COUNTER_END) {
    start = newId('req').slice(0, -COUNTER_DIGITS)
    count = 0
  }
  return start + (count++).toString(32).padStart(COUNTER_DIGITS, '0')
}
