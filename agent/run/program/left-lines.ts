import type { LineSplitters } from './output.ts'

/**
 * Lines that processes had begun when they were given up. A replay begins them anew, except for what its steps had printed,
 * which are not executed again. Where the next process is another agent's, the replay has to do.
 */
export interface LeftLines {
  put(run: string, epoch: number, lines: LineSplitters): void
  /** Of the placement just before this one. */
  take(run: string, epoch: number): LineSplitters | undefined
}

const MOST = 1_000

export function keepLeftLines(): LeftLines {
  const left = new Map<string, { epoch: number; lines: LineSplitters }>()
  return {
    put(run, epoch, lines) {
      left.delete(run)
      left.set(run, { epoch, lines })
      for (const oldest of left.keys()) {
        if (left.size <= MOST) break
        left.delete(oldest)
      }
    },
    take(run, epoch) {
      const found = left.get(run)
      left.delete(run)
      return found?.epoch === epoch - 1 ? found.lines : undefined
    },
  }
}
