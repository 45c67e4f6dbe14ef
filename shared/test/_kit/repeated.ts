import path from 'node:path'
import type { TestContext } from 'node:test'
import * as fc from 'fast-check'

const PROJECT = path.resolve(import.meta.dirname, '../../..')

/**
 * The command that runs a test file again with these settings (`SEED` stands for WINDLASS_TEST_SEED), to be pasted into
 * a shell. A test that chooses by chance prints it when it fails.
 */
export function repeated(file: string, settings: Record<string, string | number>): string {
  const filter = path.relative(PROJECT, file).replace(/\.test\.ts$/, '')
  const isStorm = process.env.WINDLASS_TEST_TIER === 'storm'
  const settingsText = Object.entries(settings).map(([name, value]) => `WINDLASS_TEST_${name}=${quoted(String(value))}`)
  return [...settingsText, isStorm ? 'npm run test:storm --' : 'npm test --', filter].join(' ')
}

const quoted = (text: string) => (/^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/**
 * Parameters for `fc.assert`: a failure prints the command that tries exactly the smallest case that failed, and
 * nothing else. WINDLASS_TEST_SEED and WINDLASS_TEST_PATH are fast-check's own seed and path, WINDLASS_TEST_NAME is the
 * name of the test.
 */
export function repeatable(t: TestContext) {
  const { WINDLASS_TEST_SEED: seed, WINDLASS_TEST_PATH: at } = process.env
  const report = <Ts>(details: fc.RunDetails<Ts>): void => {
    if (!details.failed) return
    const { filePath } = t
    if (filePath === undefined) throw new Error(fc.defaultReportMessage(details))
    const settings = { SEED: details.seed, PATH: details.counterexamplePath ?? '', NAME: t.name }
    throw new Error(`${fc.defaultReportMessage(details)}\n\nExactly this case: ${repeated(filePath, settings)}`, {
      cause: details.errorInstance,
    })
  }
  return {
    ...(seed && { seed: Number(seed) }),
    ...(at && { path: at, endOnFailure: true }),
    includeErrorInReport: true,
    reporter: report,
  }
}
