// `npm run bench`: every figure with its ratio and goal. What cannot be measured is shown as failed; the others go on.
import { readFileSync } from 'node:fs'
import { readArguments, usageOf } from './arguments.ts'
import { closeEverything } from './belongings.ts'
import { type Earlier, parseRows } from './compare.ts'
import { type Group, GROUPS, type Sitting, SITTINGS, USUAL } from './groups.ts'
import { createReport } from './report.ts'

/** Deadline of a group, to which each repeat adds some. */
const GROUP_MS = 600_000
const REPEAT_MS = 120_000
const INTERRUPTED = 130

const options = readArguments(process.argv.slice(2), { all: GROUPS, usual: USUAL })
if (!options) {
  process.stderr.write(`${usageOf(GROUPS)}\n`)
  process.exit(2)
}
const { only, repeats, json, out, compare } = options
const earlier = compare === undefined ? undefined : readEarlier(compare)
const reporting = createReport({ json, out, earlier })

/** Makes the current group fail. */
let failGroup: ((error: unknown) => void) | undefined
// Simulated agents live in this process, so an error without an owner belongs to the current group.
process.on('uncaughtException', onTrouble)
process.on('unhandledRejection', onTrouble)

let stopping: Promise<void> | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // The second Ctrl-C does not wait.
    if (stopping) process.exit(INTERRUPTED)
    process.stderr.write('\nstopping; once more ends at once\n')
    stopping = closeEverything().finally(() => process.exit(INTERRUPTED))
  })
}

for (const sitting of SITTINGS) await measureAll(sitting)
await stopping
const isWhole = USUAL.every((name) => only.includes(name))
process.exit(reporting.conclude(isWhole) ? 0 : 1)

/** Reads the earlier run before anything is measured: a run takes minutes. */
function readEarlier(file: string): Earlier {
  let why = 'it has no rows of a bench'
  try {
    const rows = parseRows(readFileSync(file, 'utf8'))
    if (rows.size > 0) return rows
  } catch (error) {
    why = (error as Error).message
  }
  process.stderr.write(`--compare ${file}: ${why}. Name a file that --out or --json has written.\n`)
  return process.exit(2)
}

/** Measures the wanted groups of a sitting. After a failure the remaining groups get a new installation. */
async function measureAll(sitting: Sitting): Promise<void> {
  let left = sitting.names.filter((name) => only.includes(name))
  while (left.length > 0) {
    await stopping
    const opened = await sitting.open().catch((error: unknown) => {
      for (const name of left) failed(name, error)
    })
    if (!opened) return
    const groups = opened.groups.filter(({ name }) => left.includes(name))
    left = []
    for (const [i, group] of groups.entries()) {
      if (await measure(group)) continue
      left = groups.slice(i + 1).map(({ name }) => name)
      break
    }
    await opened.stop().catch((error: unknown) => failed(`${sitting.names.join(', ')}: stopping`, error))
  }
}

/** Returns false when the group failed. */
async function measure(group: Group): Promise<boolean> {
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const trouble = new Promise<never>((_, reject) => {
    failGroup = reject
    const withinMs = GROUP_MS + REPEAT_MS * repeats
    timer = setTimeout(() => reject(new Error(`it was not over after ${withinMs / 60_000} minutes`)), withinMs)
  })
  try {
    // A group that was given up may still run; its rows are dropped.
    const bench = group.bench({ report: (row) => void (isOver || reporting.report(row)), repeats })
    await Promise.race([bench, trouble])
    return true
  } catch (error) {
    failed(group.name, error)
    return false
  } finally {
    isOver = true
    failGroup = undefined
    clearTimeout(timer)
  }
}

function failed(name: string, error: unknown): void {
  if (stopping) return
  reporting.fail({ name, failed: error instanceof Error ? error.message : String(error) })
}

function onTrouble(error: unknown): void {
  if (failGroup) failGroup(error)
  else if (!stopping) process.stderr.write(`between two groups: ${String(error)}\n`)
}
