import { readFileSync } from 'node:fs'

/** Looks until the check gives something, or fails with what was waited for. */
export async function until<T>(what: string, check: () => T | undefined | null | false, ms = 10_000): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const found = check()
    if (found) return found
    if (performance.now() > end) throw new Error(`${what} did not happen within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Nobody by this number, or one who is dead and only waits for a parent that does not look. */
export function isGone(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return ['Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '')
  } catch {
    // It vanished, which is what we wanted to know.
    return true
  }
}
