import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Note, Part } from '../programs/fleet/index.ts'

/** A time in which one process executed a run, as far as it could still say. */
export interface Stretch {
  pid: number
  host: string
  attempt: number
  from: number
  to: number
  /** The run returned at its end. */
  isLast: boolean
}

const SILENT_MS = 500

/** What the runs of the program `fleet` wrote down by themselves. */
export function ledgerOf(folder: string, run: string): Note[] {
  const file = join(folder, run)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Note)
}

export function stretchesOf(notes: readonly Note[]): Stretch[] {
  const open = new Map<number, Stretch>()
  const all: Stretch[] = []
  for (const { what, at, pid, host, attempt } of notes) {
    // A process that says nothing for so long got no time at all: its host was frozen.
    const isThawed = at - (open.get(pid)?.to ?? at) > SILENT_MS
    if (what === 'go' || isThawed) {
      const stretch = { pid, host, attempt, from: at, to: at, isLast: false }
      open.set(pid, stretch)
      all.push(stretch)
    }
    const stretch = open.get(pid)
    if (!stretch) throw new Error(`process ${pid} notes ${what} before it began`)
    stretch.to = at
    stretch.isLast = what === 'end'
    if (what === 'rest' || what === 'end') open.delete(pid)
  }
  return all
}

/** Two processes that executed the same run at the same time. */
export interface Overlap {
  ms: number
  text: string
}

export function overlapsIn(notes: readonly Note[]): Overlap[] {
  const stretches = stretchesOf(notes).sort((a, b) => a.from - b.from)
  return stretches.flatMap((each, index) =>
    stretches
      .slice(index + 1)
      .filter((other) => other.pid !== each.pid && other.from < each.to)
      .map((other) => {
        const ms = Math.min(each.to, other.to) - other.from
        return { ms, text: `${stretchText(other)} executed beside ${stretchText(each)} for ${Math.round(ms)} ms` }
      }),
  )
}

/** What the ledger says of the end of a run that has completed in this attempt. */
export function wrongEnd(notes: readonly Note[], attempt: number): string[] {
  const isIt = stretchesOf(notes).some((each) => each.isLast && each.attempt === attempt)
  return isIt ? [] : [`attempt ${attempt} never came to its end`]
}

function stretchText({ pid, host, attempt, isLast }: Stretch): string {
  return `process ${pid} at ${host} (attempt ${attempt}${isLast ? ', to the end' : ''})`
}

/** Lines that the run itself prints. */
export function linesOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { lines }) => sum + lines, 0)
}
