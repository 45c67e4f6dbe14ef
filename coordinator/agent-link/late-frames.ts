import type { FramesOfOrg, FramesOfRunner, Open } from './frame-turns.ts'

/** Two commits of one agent, and four of an org: what is beyond stays text until some of it is committed. */
const MOST_WEIGHT = { runner: 8000, org: 16_000 }
/** And of what is answered late: all that one of our agents has under way, and twice that. */
const MOST_LATE = { runner: 16_000, org: 32_000 }

export const mayReadMore = (org: FramesOfOrg, runner: FramesOfRunner): boolean =>
  runner.weight < MOST_WEIGHT.runner && org.weight < MOST_WEIGHT.org

export function opened(org: FramesOfOrg, open: Open): void {
  org.open.add(open)
  add(org, open, open.weight)
}

/** The queues that may read more now: those of its agent, or of the whole org. */
export function answered(org: FramesOfOrg, open: Open): Iterable<FramesOfRunner> {
  const wasFull = org.weight >= MOST_WEIGHT.org
  org.open.delete(open)
  add(org, open, -open.weight)
  return wasFull && org.weight < MOST_WEIGHT.org ? org.runners.values() : [open.runner]
}

function add(org: FramesOfOrg, { runner, isLate }: Open, weight: number): void {
  for (const each of [org, runner]) {
    if (isLate) each.lateWeight += weight
    else each.weight += weight
  }
}

/**
 * Entries of one run whose answer takes long do not keep those of others from being read: what is late counts apart,
 * as far as there is room for it.
 */
export function lookForLate(org: FramesOfOrg): void {
  org.look ??= setTimeout(() => {
    org.look = undefined
    if (setApart(org)) for (const { queues } of org.runners.values()) for (const queue of queues) queue.wake()
    else if (org.open.size > 0) lookForLate(org)
  }, org.lateMs).unref()
}

/** True when something was. */
function setApart(org: FramesOfOrg): boolean {
  const since = performance.now() - org.lateMs
  let isAny = false
  for (const open of org.open) {
    if (open.begunAt > since) break
    const { runner, weight, isLate } = open
    const isTooMuch = runner.lateWeight + weight > MOST_LATE.runner || org.lateWeight + weight > MOST_LATE.org
    if (isLate || isTooMuch) continue
    add(org, open, -weight)
    open.isLate = isAny = true
    add(org, open, weight)
  }
  return isAny
}
