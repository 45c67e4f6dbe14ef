import type { LineSplitters } from './output.ts'

/**
 * Lines that processes had begun when they were given up. A replay begins them anew, except for what its steps had printed,
 * which are not executed again. Where the next process is another agent's, the replay has to do.
 */
export interface LeftLines {
  /** The process is gone: what finds the secrets of the run is not kept with its lines. */
  put(run: string, epoch: number, lines: LineSplitters): void
  /** Of the placement just before this one. */
  take(run: string, epoch: number): LineSplitters | undefined
}

interface Left {
  epoch: number
  lines: LineSplitters
  bytes: number
}

const MOST = 1_000
const MOST_BYTES = 16 * 1024 * 1024

export function keepLeftLines(mostBytes = MOST_BYTES): LeftLines {
  const left = new Map<string, Left>()
  let bytes = 0

  function drop(run: string): Left | undefined {
    const found = left.get(run)
    if (found) bytes -= found.bytes
    left.delete(run)
    return found
  }

  return {
    put(run, epoch, lines) {
      drop(run)
      const each = Object.values(lines)
      // Most have ended their last line: the next process begins with nothing, as it would without them.
      if (each.every((line) => line.isEmpty())) return
      for (const line of each) line.leave()
      const own = each.reduce((sum, line) => sum + line.heldBytes(), 0)
      left.set(run, { epoch, lines, bytes: own })
      bytes += own
      for (const oldest of left.keys()) {
        if (left.size <= MOST && bytes <= mostBytes) break
        drop(oldest)
      }
    },
    take(run, epoch) {
      const found = drop(run)
      return found?.epoch === epoch - 1 ? found.lines : undefined
    },
  }
}
