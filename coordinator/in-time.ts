import { Fault } from '@windlass/shared/errors.ts'
import { pause } from '@windlass/shared/time.ts'

/**
 * Of what may wait for other work of its org, for somebody for whom other orgs wait. Throws UNAVAILABLE when it takes
 * longer; then what becomes of it is thrown away.
 */
export async function inTime<T>(ms: number, work: Promise<T>): Promise<T> {
  const over = new AbortController()
  const late = pause(ms, over.signal).then(() => {
    throw new Fault('UNAVAILABLE', {}, `It took longer than ${ms} ms, as other work of its org does.`)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    over.abort()
  }
}
