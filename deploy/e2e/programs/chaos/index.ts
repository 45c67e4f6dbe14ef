import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { log, phase } from 'windlass'
import type { RunContext } from 'windlass'

export interface Input {
  /** Where each run keeps a diary of its attempts, out of reach of everything that is killed meanwhile. */
  folder: string
  /** Lines to be logged, numbered from 1. */
  lines: number
  /** Milliseconds from the first to the last. */
  takesMs: number
  /** A file: nothing is logged before it is there. Without it, it begins at once. */
  gate?: string
}

/** One line of the diary. `living`: processes that were busy with earlier attempts when this one began. */
export interface Entry {
  attempt: number
  what: 'start' | 'end'
  pid: number
  ticks: string
  living: number[]
}

const PARTS = 5
const LOOK_MS = 50

export async function run(
  { folder, lines, takesMs, gate }: Input,
  context: RunContext,
): Promise<{ attempt: number; lines: number }> {
  const diary = join(folder, context.runId)
  note(diary, context.attempt, 'start')
  if (gate !== undefined) await opened(gate)
  for (let part = 1, line = 1; part <= PARTS; part++) {
    phase(`part ${part}`)
    for (; line <= (lines * part) / PARTS; line++) {
      // Both ways to the log, in one order.
      if (line % 2) console.log(`line ${line}`)
      else log(`line ${line}`)
    }
    if (takesMs > 0) await wait(takesMs / PARTS)
  }
  note(diary, context.attempt, 'end')
  return { attempt: context.attempt, lines }
}

async function opened(gate: string): Promise<void> {
  while (!existsSync(gate)) await wait(LOOK_MS)
}

/** One write with O_APPEND: what is in the file is whole and in order, whoever is killed. */
function note(diary: string, attempt: number, what: Entry['what']): void {
  const own = { pid: process.pid, ticks: ticksOf(process.pid) ?? '' }
  const living =
    what === 'start'
      ? unendedOf(diary).filter((entry) => entry.pid !== own.pid && ticksOf(entry.pid) === entry.ticks)
      : []
  appendFileSync(diary, `${JSON.stringify({ attempt, what, ...own, living: living.map((entry) => entry.pid) })}\n`)
}

/** Starts of attempts that have not come to their end. A process that has may serve other runs by now. */
function unendedOf(diary: string): Entry[] {
  const entries = entriesOf(diary)
  const ended = new Set(entries.filter(({ what }) => what === 'end').map(({ attempt }) => attempt))
  return entries.filter(({ attempt }) => !ended.has(attempt))
}

function entriesOf(diary: string): Entry[] {
  const text = readOrNothing(diary) ?? ''
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Entry]))
}

/** When a process began, which tells it from a later one with its number. Nothing for one that is dead. */
function ticksOf(pid: number): string | undefined {
  const stat = readOrNothing(`/proc/${pid}/stat`)
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields && fields[0] !== 'Z' && fields[0] !== 'X' ? fields[19] : undefined
}

function readOrNothing(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw error
  }
}
