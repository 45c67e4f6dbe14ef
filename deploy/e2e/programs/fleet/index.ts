import { appendFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { sleep, step, workflows } from 'windlass'
import type { RunContext } from 'windlass'

/** One stretch of work: it prints lines, takes its time, and then perhaps waits for something. */
export interface Part {
  lines: number
  takesMs: number
  next?: { sleepMs: number } | { step: string } | { child: { workflow: string; parts: Part[] } }
}

export interface Input {
  /** Where each run keeps a ledger, out of reach of Windlass. */
  folder: string
  parts: Part[]
}

/**
 * A line of the ledger. `go`: it executes from here on; `tick`: it still does; `rest`: it only waits; `end`: it has returned.
 * `at` is of the monotonic clock, which all hosts of a test share.
 */
export interface Note {
  what: 'go' | 'tick' | 'rest' | 'end'
  at: number
  attempt: number
  pid: number
  host: string
}

const TICK_MS = 20

export async function run({ folder, parts }: Input, context: RunContext): Promise<{ attempt: number; lines: number }> {
  const host = address()
  let lines = 0
  let ticking: NodeJS.Timeout | undefined
  go()
  try {
    for (const part of parts) await perform(part)
    note('end')
    return { attempt: context.attempt, lines }
  } finally {
    clearInterval(ticking)
  }

  async function perform({ lines: count, takesMs, next }: Part): Promise<void> {
    for (let n = 0; n < count; n++) console.log(`line ${++lines}`)
    if (takesMs > 0) await wait(takesMs)
    if (!next) return
    if ('step' in next) return step(next.step, () => Promise.resolve())
    clearInterval(ticking)
    note('rest')
    if ('sleepMs' in next) await sleep(next.sleepMs)
    else await workflows.call(next.child.workflow, { folder, parts: next.child.parts })
    go()
  }

  function go(): void {
    note('go')
    ticking = setInterval(() => note('tick'), TICK_MS)
  }

  function note(what: Note['what']): void {
    const at = Number(process.hrtime.bigint() / 1000n) / 1000
    const line: Note = { what, at, attempt: context.attempt, pid: process.pid, host }
    // One write with O_APPEND: what is in the file is whole and in order, whoever is killed.
    appendFileSync(join(folder, context.runId), `${JSON.stringify(line)}\n`)
  }
}

/** Which host this is: the address of its only card. */
function address(): string {
  const cards = Object.values(networkInterfaces()).flat()
  return cards.find((card) => card && !card.internal && card.family === 'IPv4')?.address ?? 'none'
}
