// Short test files are executed in groups, one process for each: to load what they test takes longer than most of them.
// Those that share a coordinator stand together.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { PROJECT } from './source-files.ts'
import { LONG } from './tiers.ts'

/** When the process of a group breaks, so many are to be repeated; and groups shall end at about the same time. */
const GROUP_SIZE = 12
const TOGETHER = path.join(PROJECT, 'coordinator/test/_kit/together.ts')

export interface TestProcess {
  /** What `node --test` is given: a test file, or a module that executes the files of a group. */
  entry: string
  files: readonly string[]
}

/** Each takes more than 20 s, a storm more than 90: one that began last would leave the other lanes idle. */
export const LONGEST: ReadonlySet<string> = new Set([
  'coordinator/test/api/examples.test.ts',
  'coordinator/test/db/plans.test.ts',
  'coordinator/test/workflows/compile.test.ts',
  'deploy/e2e/cli.test.ts',
  'deploy/e2e/golden/golden.test.ts',
  'deploy/e2e/start.test.ts',
  'deploy/e2e/storm/durable-waits.test.ts',
  'deploy/e2e/storm/outages.test.ts',
  'deploy/e2e/storm/packages.test.ts',
  'deploy/e2e/storm/takeover.test.ts',
  'sdk/test/runtime/engine/property.test.ts',
])

/**
 * What a file does to its process, or measures of it, that the others of a group would meet: the end of a process is
 * among it, and so are clocks that are held, and the test of the sharing itself.
 */
const OF_THE_PROCESS = [
  /process\.env(\.\w+|\[[^\]]+\]) ?=[^=]/,
  /process\.(chdir|exit|umask|on|once|memoryUsage|cpuUsage)\b/,
  /delete process\.env|globalThis|mock\.|'nock'|new Worker|shared-coordinator\.ts/,
]

/** One process for each file, or for several. Modules of groups are written to `folder`. */
export function inProcesses(files: readonly string[], folder: string, deadlineMs: number): TestProcess[] {
  const of = Map.groupBy(files, groupOf)
  let count = 0
  const processOf = (group: string[]): TestProcess => {
    if (group.length === 1) return { entry: group[0]!, files: group }
    const entry = path.join(folder, `group-${++count}.mjs`)
    const options = JSON.stringify({ root: PROJECT, files: group, deadlineMs })
    const source = `import { executeTogether } from '${pathToFileURL(TOGETHER).href}'\nexecuteTogether(${options})\n`
    writeFileSync(entry, source)
    return { entry, files: group }
  }
  const alone = (of.get(ALONE) ?? []).map((file) => ({ entry: file, files: [file] }))
  of.delete(ALONE)
  const groups = [...of.values()].flatMap((all) => evenly(all, Math.ceil(all.length / GROUP_SIZE)))
  return [...groups.map(processOf), ...alone]
}

const ALONE = 'alone'

/** Files with the same answer may share a process. */
function groupOf(file: string): string {
  const [room = '', kind] = file.split('/')
  if (LONGEST.has(file) || LONG.includes(file) || kind !== 'test') return ALONE
  const source = readFileSync(path.join(PROJECT, file), 'utf8')
  if (OF_THE_PROCESS.some((sign) => sign.test(source))) return ALONE
  // Those with settings of their own ask in other words.
  return source.includes('aCoordinator()') ? 'with a coordinator' : room
}

/**
 * What `node --test` is given. It sorts the paths: those from the root of the file system on, of groups and of the
 * longest files, come before those from the project's root on.
 */
export function pathsOf(processes: readonly TestProcess[], longest = LONGEST): string[] {
  return processes.map(({ entry }) => (longest.has(entry) ? path.join(PROJECT, entry) : entry))
}

/** Neighbours stand in different groups: files of one room take equally long. */
function evenly(files: readonly string[], count: number): string[][] {
  return Array.from({ length: count }, (_, i) => files.filter((_file, at) => at % count === i))
}
