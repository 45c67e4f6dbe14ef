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
  const placeOf = new Map<string, { rank: number; at: number }>()

  function remove(id: string): void {
    const place = placeOf.get(id)
    if (!place) return
    placeOf.delete(id)
    const last = ranks[place.rank]!.pop()!
    if (last === id) return
    ranks[place.rank]![place.at] = last
    placeOf.get(last)!.at = place.at
  }

  return {
    remove,
    set(id, size) {
      const rank = Math.floor(RANKS * Math.log2(Math.max(1, size)))
      if (placeOf.get(id)?.rank === rank) return
      remove(id)
      const ofRank = (ranks[rank] ??= [])
      placeOf.set(id, { rank, at: ofRank.push(id) - 1 })
    },
    largest: () => ranks.findLast((ids) => ids !== undefined && ids.length > 0)?.[0],
  }
}
