import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { phase } from 'windlass'
import type { RunContext } from 'windlass'

export interface Input {
  takesMs?: number
}

/** Does its work beside whatever happens to others, and tells what it has in its folder. */
export async function run(
  { takesMs = 300 }: Input,
  context: RunContext,
): Promise<{ attempt: number; folder: string; files: string[] }> {
  phase('work')
  await writeFile(`mine-${context.runId}.txt`, 'mine')
  await wait(takesMs)
  return { attempt: context.attempt, folder: process.cwd(), files: readdirSync('.').toSorted() }
}
