import type { Overlap } from '@windlass/shared/model/late-rules.ts'

/**
 * What becomes of ticks that are to fire while runs of the schedule are unfinished. `skip`: the first fires where there
 * is none, and the others meet its run. `cancel`: the last one fires, and what is unfinished is cancelled for it.
 */
export function decideOverlap<T>(
  overlap: Overlap,
  ticks: readonly T[],
  unfinished: readonly string[],
): { fire: T[]; skip: T[]; cancel: string[] } {
  if (overlap === 'allow' || ticks.length === 0) return { fire: [...ticks], skip: [], cancel: [] }
  if (overlap === 'cancel') return { fire: ticks.slice(-1), skip: ticks.slice(0, -1), cancel: [...unfinished] }
  const room = unfinished.length === 0 ? 1 : 0
  return { fire: ticks.slice(0, room), skip: ticks.slice(room), cancel: [] }
}
