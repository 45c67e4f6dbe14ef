/** The one coordinator that the test files of a process share, be it one file or a group of them. */
import { pause } from '@windlass/shared/time.ts'
import type { TestCoordinator } from './coordinator-types.ts'

interface Lent {
  starting: Promise<TestCoordinator>
  borrowers: number
}

/** Connections that a file closed at its end may take so long to be gone. */
const LEAVE_MS = 10_000

let lent: Lent | undefined
/** A group keeps the coordinator for its next file; else it stops with its last borrower. */
let isHeldOpen = false

export interface Borrowed {
  coordinator: TestCoordinator
  /** Fails when the borrower leaves something behind that others would meet in the coordinator's memory. */
  giveBack: () => Promise<void>
}

export async function borrowCoordinator(start: () => Promise<TestCoordinator>, leaveMs = LEAVE_MS): Promise<Borrowed> {
  const mine = (lent ??= { starting: start(), borrowers: 0 })
  mine.borrowers++
  try {
    const coordinator = await mine.starting
    return { coordinator, giveBack: () => giveBack(mine, coordinator, leaveMs) }
  } catch (error) {
    // The next one tries again.
    if (lent === mine) lent = undefined
    throw error
  }
}

async function giveBack(mine: Lent, coordinator: TestCoordinator, leaveMs: number): Promise<void> {
  mine.borrowers--
  if (mine.borrowers > 0) return
  const left = await remains(coordinator, leaveMs)
  if (left || !isHeldOpen) await retire(mine)
  if (left) throw new Error(`The file ends and leaves ${left}; close them before the coordinator.`)
}

/** What is open still, in words. */
async function remains({ deps }: TestCoordinator, leaveMs: number): Promise<string | undefined> {
  const end = performance.now() + leaveMs
  for (;;) {
    const counts = { agents: deps.sockets.size, polls: deps.dispatchers.waiting(), readers: deps.tails.readers() }
    const open = Object.entries(counts).filter(([, count]) => count > 0)
    if (open.length === 0) return undefined
    if (performance.now() > end) return open.map(([what, count]) => `${count} ${what}`).join(', ')
    await pause(5)
  }
}

async function retire(one: Lent): Promise<void> {
  if (lent === one) lent = undefined
  await (await one.starting).stop()
}

/** Keeps the coordinator between files, from its first borrower to `end`. */
export function keepCoordinator() {
  isHeldOpen = true
  return {
    /** A file that was cut off has not given its coordinator back: the next file has a new one. */
    async nextFile(): Promise<void> {
      if (lent && lent.borrowers > 0) await retire(lent)
    },
    async end(): Promise<void> {
      isHeldOpen = false
      if (lent) await retire(lent)
    },
  }
}
