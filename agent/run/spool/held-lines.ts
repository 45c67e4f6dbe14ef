import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { Held } from './held.ts'
import { batchLine, gapLine, markLine, openLine } from './line.ts'

/** What every new file begins with. */
export function headOf(held: Held): string {
  const isEnded = held.isEnded && held.gathered.length === 0
  const mark = held.mark ? markLine(held.run, held.epoch, held.mark) : ''
  return openLine(held.run, held.epoch, held.written + 1, isEnded) + mark + gapOf(held)
}

export function nextMarkOf({ run, epoch, nextMark }: Held): string {
  return nextMark ? markLine(run, epoch, nextMark) : ''
}

/** The next mark stands in the files. */
export function marked(held: Held): void {
  held.mark = held.nextMark ?? held.mark
  held.nextMark = undefined
}

export function gapOf({ run, epoch, gap }: Held): string {
  return gap ? gapLine(run, epoch, gap) : ''
}

export type Gathered = ReturnType<typeof gatheredOf>

/** What is gathered for a placement, as a line of the spool and as the text for the wire. */
export function gatheredOf(held: Held) {
  const first = held.written + 1
  const last = held.written + held.gathered.length
  const head = `{"run":"${held.run}","epoch":${held.epoch},"first":${first},"entries":[`
  const json = `${head}${held.gathered.join(',')}]}`
  const line = batchLine(held.run, held.epoch, { first, last, isEnded: held.isEnded }, json) + nextMarkOf(held)
  const chars = held.gathered.reduce((sum, text) => sum + text.length, 0)
  return { held, first, last, json, line, chars }
}

/** As the coordinator's clock tells it, which is so far ahead of ours. */
export function byClockOf(offsetMs: number, entry: Entry): Entry {
  return offsetMs === 0 ? entry : (entry.with(1, Math.max(0, entry[1] + offsetMs)) as unknown as Entry)
}
