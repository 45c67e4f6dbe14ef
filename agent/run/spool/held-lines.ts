import type { Entry, Placement } from '@windlass/shared/wire/agent.ts'
import { addBehind, addWritten, type Held } from './held.ts'
import { batchLine, gapLine, markLine, openLine } from './line.ts'

/** What every new file begins with. `store`: see `thisStore`. */
export function headOf(held: Held, store: string): string {
  const isEnded = held.isEnded && held.gathered.length === 0
  const mark = held.mark ? markLine(held.run, held.epoch, held.mark) : ''
  const unbegunIn = held.isUnbegun ? store : ''
  return openLine(held.run, held.epoch, { next: held.written + 1, isEnded, unbegunIn }) + mark + gapOf(held)
}

/** Of placements of which nothing was said yet. */
export function openLines(placements: readonly Placement[], store: string): string {
  return placements.map(([run, epoch]) => openLine(run, epoch, { next: 1, unbegunIn: store })).join('')
}

export function begunLineOf({ run, epoch, written }: Held): string {
  return openLine(run, epoch, { next: written + 1 })
}

export function nextMarkOf({ run, epoch, nextMark }: Held): string {
  return nextMark ? markLine(run, epoch, nextMark) : ''
}

/** The next mark stands in the files by itself. Answers by how many bytes the backlog grew. */
export function markWritten(held: Held): number {
  const grown = addBehind(held, Buffer.byteLength(nextMarkOf(held)))
  marked(held)
  return grown
}

function marked(held: Held): void {
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
  return { held, first, last, json, line }
}

/** It stands in that file. Answers by how much the backlog grew, in which its characters count already. */
export function gatheredWritten({ held, last, line }: Gathered, segment: number): number {
  const bytes = Buffer.byteLength(line)
  const counted = held.gathered.reduce((sum, text) => sum + text.length, 0)
  held.gathered = []
  marked(held)
  addWritten(held, last, bytes, segment)
  return bytes - counted
}

/** As the coordinator's clock tells it, which is so far ahead of ours. */
export function byClockOf(offsetMs: number, entry: Entry): Entry {
  return offsetMs === 0 ? entry : (entry.with(1, Math.max(0, entry[1] + offsetMs)) as unknown as Entry)
}
