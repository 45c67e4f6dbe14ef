import { pause } from '@windlass/shared/time.ts'

/** Looks until the check gives something, or fails with what was waited for. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  ms = 10_000,
): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const found = await check()
    if (found) return found
    if (performance.now() > end) throw new Error(`${what} did not happen within ${ms} ms`)
    await pause(10)
  }
}
