import path from 'node:path'

/**
 * What the test runner tells every process of a run, also those that start with an environment of their own: the mark
 * by which it finds what was left behind, and how modules are loaded fast.
 */
const NAMES = ['WINDLASS_TEST_RUN', 'NODE_OPTIONS', 'NODE_COMPILE_CACHE']

export function testRunVariables(): Record<string, string> {
  return Object.fromEntries(NAMES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}

/** The variable that names the CLI as it is handed out, unpacked by the test runner. */
export const TEST_CLI = 'WINDLASS_TEST_CLI'

const CLI_OF_THE_SOURCES = path.resolve(import.meta.dirname, '../../../sdk/cli/windlass.mjs')
/** Commands that the package does not have, and the list of all. */
const NOT_IN_PACKAGE: readonly (string | undefined)[] = ['agent', 'admin', '--help']

/**
 * The file to start for a command of the CLI, and what to tell it: what users install, where the test runner has
 * unpacked it; else, and for what that lacks, the sources.
 */
export function testCli([command]: readonly string[]): { file: string; variables: Record<string, string> } {
  const packaged = process.env[TEST_CLI]
  if (packaged === undefined || NOT_IN_PACKAGE.includes(command))
    return { file: CLI_OF_THE_SOURCES, variables: testRunVariables() }
  // It has no TypeScript that would take long to load.
  const { NODE_OPTIONS: _, ...variables } = testRunVariables()
  return { file: packaged, variables }
}
