/** state: the run stands still, at rest or blocked · keeping: what a step has come to is being committed */
type Reason = 'state' | 'keeping'

/** Keeps the process for several reasons at once. */
export function createHolds(holdOn: (hold: boolean) => void) {
  const reasons = new Set<Reason>()
  return (reason: Reason, hold: boolean): void => {
    const before = reasons.size > 0
    if (hold) reasons.add(reason)
    else reasons.delete(reason)
    if (reasons.size > 0 !== before) holdOn(!before)
  }
}
