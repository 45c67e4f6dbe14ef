import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive, markOf } from '@windlass/agent/os/process-id.ts'
import { readMark } from '@windlass/agent/lock-holder.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Teller } from './tell.ts'

const SUPERVISOR = 'start'
const PARTS = ['coordinator', 'agent']
/** The parts give themselves 15 s at most. */
const WITHIN_MS = 30_000
const LOOK_MS = 50

const fileOf = (home: string, name: string) => join(home, 'parts', `${name}.json`)

/** Writes down which process is a part of this start, for the next one. */
export function noteProcess(home: string, name: string, pid: number | undefined): void {
  const mark = pid === undefined ? undefined : markOf(pid)
  if (!mark) return
  try {
    mkdirSync(join(home, 'parts'), { recursive: true })
    writeFileSync(fileOf(home, name), JSON.stringify(mark), { mode: 0o600 })
  } catch {
    // The disk is full, most likely: the next start waits for nobody, and is told what is in use.
  }
}

export const noteSupervisor = (home: string): void => noteProcess(home, SUPERVISOR, process.pid)

/**
 * Parts of a start that was killed end by themselves; until then they have its port and the folder of its agent. What
 * has not ended in time is met by whoever needs what it holds, and named there.
 */
export async function awaitEarlier(home: string, tell: Teller, stop: AbortSignal): Promise<void> {
  const supervisor = readMark(fileOf(home, SUPERVISOR))
  if (!supervisor || isAlive(supervisor)) return
  const left = () => PARTS.flatMap((name) => aliveAs(home, name))
  const found = left()
  if (found.length === 0) return
  const which = found.map(({ name, pid }) => `${name} (process ${pid})`).join(', ')
  tell.say(
    `The start before this one was killed. Waiting up to ${WITHIN_MS / 1000} s for what it left to end: ${which}.`,
  )
  const end = performance.now() + WITHIN_MS
  while (left().length > 0 && !stop.aborted && performance.now() < end) await pause(LOOK_MS, stop)
}

function aliveAs(home: string, name: string): { name: string; pid: number }[] {
  const mark = readMark(fileOf(home, name))
  return mark && isAlive(mark) ? [{ name, pid: mark.pid }] : []
}
