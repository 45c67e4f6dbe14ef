import { Fault } from '@windlass/shared/errors.ts'
import { pause } from '@windlass/shared/time.ts'

/**
 * Waits so many milliseconds for work that stands in line behind other work, of its org as a rule, so that other orgs
 * do not wait with it. Throws UNAVAILABLE when the time is over; the result is thrown away then.
 */
export async function inTime<T>(
  ms: number,
  work: Promise<T>,
  message = `It took longer than ${ms} ms, as other work of its org does.`,
): Promise<T> {
  const over = new AbortController()
  const late = pause(ms, over.signal).then(() => {
    throw new Fault('UNAVAILABLE', {}, message)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    over.abort()
  }
}

/** Whether this settles within so many milliseconds. */
export async function isInTime(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController()
  const settled = work.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([settled, pause(ms, over.signal).then(() => false)])
  } finally {
    over.abort()
  }
}
