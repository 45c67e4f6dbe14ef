import { setTimeout as wait } from 'node:timers/promises'

const LOOK_MS = 25

/** Looks until the check gives something, or fails with what was waited for and what `more` knows about it. */
export async function until<T>(
  what: string,
  check: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  { ms = 10_000, more = () => '' }: { ms?: number; more?: () => string } = {},
): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const found = await check()
    if (found) return found
    if (performance.now() > end) throw new Error(`${what}: not within ${ms} ms. ${more()}`)
    await wait(LOOK_MS)
  }
}
