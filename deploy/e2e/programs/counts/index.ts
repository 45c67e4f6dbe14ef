import { appendFileSync } from 'node:fs'
import { log, sleep, step } from 'windlass'

interface Ask {
  lines: number
  /** Pause after each line. */
  ms: number
  /** Sleeps for so long after each twenty lines. */
  sleepMs?: number
  /** Each step that is executed is noted there, outside of everything that Windlass keeps. */
  notes: string
  /** Starts another process first. */
  others?: boolean
}

/** Says numbered lines in four different ways, some of them in pieces, and has a step in every tenth. */
export async function run({ lines, ms, sleepMs, notes, others }: Ask): Promise<{ sum: number; pids: number[] }> {
  if (others) process.getBuiltinModule('node:child_process').execFileSync('true')
  const pids = new Set<number>()
  let sum = 0
  for (let n = 1; n <= lines; n++) {
    pids.add(process.pid)
    await say(n)
    if (n % 10 === 0) sum += await step(`step ${n}`, () => noted(notes, n))
    if (sleepMs && n % 20 === 0) await sleep(sleepMs)
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
  return { sum, pids: [...pids] }
}

async function say(n: number): Promise<void> {
  const text = `line ${n} ${process.env.COUNTS_SECRET ?? ''}`.trimEnd()
  if (n % 4 === 0) console.error(text)
  else if (n % 4 === 1) log(text)
  else if (n % 4 === 2) process.stdout.write(`${text}\n`)
  else {
    process.stdout.write(text.slice(0, 3))
    await new Promise((resolve) => setTimeout(resolve, 5))
    process.stdout.write(`${text.slice(3)}\n`)
  }
}

function noted(file: string, n: number): number {
  appendFileSync(file, `${n}\n`)
  return n
}
