import type { Port } from './port.ts'

/** What is put off until the program has been led to where its last process stood. */
interface Arrival {
  /**
   * Has `act` called at the arrival, or after so long; at once where the program is not on its way. Put off again, what
   * was put off first is called after the shorter time of both.
   */
  putOff(act: () => void, withinMs: number): void
  /** False: nothing was put off. */
  come(): boolean
}

/** `onTheWay`: the process, while the program is being led. */
export function createArrival(onTheWay: () => Pick<Port, 'later' | 'soon'> | false): Arrival {
  let putOff: { act: () => void; end: () => void } | undefined

  function come(): boolean {
    if (!putOff) return false
    const { act, end } = putOff
    putOff = undefined
    end()
    act()
    return true
  }

  return {
    putOff(act, withinMs) {
      const port = onTheWay()
      if (!port) return act()
      const stopTimer = port.later(withinMs, false, come)
      const first = putOff
      // Nothing else may keep the process, and what the program is told it hears in a moment.
      const end = () => (stopTimer(), first ? first.end() : port.soon(() => {}))
      putOff = { act: first?.act ?? act, end }
    },
    come,
  }
}
