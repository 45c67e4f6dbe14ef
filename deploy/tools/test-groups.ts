// Test files that share a coordinator are executed in groups, one process for each.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { PROJECT } from './source-files.ts'

/** Each group starts a coordinator of its own; when its process breaks, so many files are to be repeated. */
const GROUP_SIZE = 10
const TOGETHER = path.join(PROJECT, 'coordinator/test/_kit/together.ts')

export interface TestProcess {
  /** What `node --test` is given: a test file, or a module that executes the files of a group. */
  entry: string
  files: readonly string[]
}

/** Each takes more than 20 s: one that began last would leave the other lane idle. */
const LONGEST: ReadonlySet<string> = new Set([
  'coordinator/test/api/examples.test.ts',
  'coordinator/test/db/plans.test.ts',
  'coordinator/test/downloads/downloads.test.ts',
  'deploy/e2e/cli.test.ts',
  'deploy/e2e/durable-waits.test.ts',
  'deploy/e2e/golden/golden.test.ts',
  'deploy/e2e/openapi-property.test.ts',
  'deploy/e2e/property.test.ts',
  'deploy/e2e/start.test.ts',
  'sdk/test/cli/drain.test.ts',
])

/** One process for each file, or for several that share a coordinator. Modules of groups are written to `folder`. */
export function inProcesses(files: readonly string[], folder: string, deadlineMs: number): TestProcess[] {
  const sharing = files.filter(sharesCoordinator)
  const groups = evenly(sharing, Math.ceil(sharing.length / GROUP_SIZE))
  const together = groups.map((group, i): TestProcess => {
    if (group.length === 1) return { entry: group[0]!, files: group }
    const entry = path.join(folder, `group-${i + 1}.mjs`)
    const options = JSON.stringify({ root: PROJECT, files: group, deadlineMs })
    const source = `import { executeTogether } from '${pathToFileURL(TOGETHER).href}'\nexecuteTogether(${options})\n`
    writeFileSync(entry, source)
    return { entry, files: group }
  })
  const alone = files.filter((file) => !sharing.includes(file)).map((file) => ({ entry: file, files: [file] }))
  return [...together, ...alone]
}

/**
 * What `node --test` is given. It sorts the paths: those from the root of the file system on, of groups and of the
 * longest files, come before those from the project's root on.
 */
export function pathsOf(processes: readonly TestProcess[], longest = LONGEST): string[] {
  return processes.map(({ entry }) => (longest.has(entry) ? path.join(PROJECT, entry) : entry))
}

/** Files with settings of their own ask in other words; the test of the sharing itself has a process to itself. */
function sharesCoordinator(file: string): boolean {
  if (!file.startsWith('coordinator/test/')) return false
  const source = readFileSync(path.join(PROJECT, file), 'utf8')
  return source.includes('aCoordinator()') && !source.includes('shared-coordinator.ts')
}

/** Neighbours stand in different groups: files of one room take equally long. */
function evenly(files: readonly string[], count: number): string[][] {
  return Array.from({ length: count }, (_, i) => files.filter((_file, at) => at % count === i))
}
