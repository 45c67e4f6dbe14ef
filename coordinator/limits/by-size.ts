/** So many ranks for each doubling: two of one rank differ by a ninth at most. */
const RANKS = 8

/** Knows which of many holds most, to within a ninth, without a look at all of them. */
export interface BySize {
  set(id: string, size: number): void
  remove(id: string): void
  largest(): string | undefined
}

export function createBySize(): BySize {
  const ranks: string[][] = []
  const positionOf = new Map<string, { rank: number; at: number }>()

  function remove(id: string): void {
    const position = positionOf.get(id)
    if (!position) return
    positionOf.delete(id)
    const last = ranks[position.rank]!.pop()!
    if (last === id) return
    ranks[position.rank]![position.at] = last
    positionOf.get(last)!.at = position.at
  }

  return {
    remove,
    set(id, size) {
      const rank = Math.floor(RANKS * Math.log2(Math.max(1, size)))
      if (positionOf.get(id)?.rank === rank) return
      remove(id)
      const ofRank = (ranks[rank] ??= [])
      positionOf.set(id, { rank, at: ofRank.push(id) - 1 })
    },
    largest: () => ranks.findLast((ids) => ids !== undefined && ids.length > 0)?.[0],
  }
}
