/** Lines that one name may bring in a second: a flood must not fill the disk. */
const LINES_PER_SECOND = 5
/** Names that were flooded and have not come again: whoever chooses names, as by addresses, may have any number. */
const MOST_UNLOGGED = 2000

/** Answers the facts to add to a line that may be written, or undefined for one that is left out and counted. */
export type Sample = (name: string) => { unlogged?: number } | undefined

/** Each name has its own share, so that nobody can hide the lines of others. */
export function createSample(now: () => number = () => performance.now()): Sample {
  let second = 0
  let lines = new Map<string, number>()
  /** By name, the oldest first. Names that nothing was left out of are forgotten with their second. */
  const unlogged = new Map<string, number>()
  return (name) => {
    const present = Math.floor(now() / 1000)
    if (present !== second) lines = new Map()
    second = present
    const count = (lines.get(name) ?? 0) + 1
    lines.set(name, count)
    const left = unlogged.get(name) ?? 0
    if (count > LINES_PER_SECOND) {
      unlogged.delete(name)
      unlogged.set(name, left + 1)
      if (unlogged.size > MOST_UNLOGGED) unlogged.delete(unlogged.keys().next().value!)
      return undefined
    }
    unlogged.delete(name)
    return left > 0 ? { unlogged: left } : {}
  }
}
