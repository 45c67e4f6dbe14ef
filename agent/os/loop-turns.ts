/**
 * Answers how to wait for one's turn: of all who wait, one has it in each turn of the event loop, and whoever speaks
 * with the coordinator has his between them.
 */
export function createLoopTurns(): () => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return () => {
    last = last.then(() => new Promise((resolve) => void setImmediate(resolve)))
    return last
  }
}
