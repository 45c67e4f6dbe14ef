import { noRoomText } from './failure.ts'
import type { Teller } from './tell.ts'

const LOOK_MS = 1000

/** Says that the disk of the home is full, and when it has room again: what lies on it cannot say so. */
export function watchRoom(home: string, tell: Teller, stop: AbortSignal): void {
  let wasFull = false
  const look = () => {
    const text = noRoomText(home)
    const isFull = text !== undefined
    if (isFull === wasFull) return
    wasFull = isFull
    if (text) tell.fail(`${text} Until then log lines are dropped and no work is taken.`)
    else tell.say(`The disk of ${home} has room again.`)
  }
  const timer = setInterval(look, LOOK_MS)
  timer.unref()
  stop.addEventListener('abort', () => clearInterval(timer), { once: true })
}
