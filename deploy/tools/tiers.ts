// Which test files run when. `npm test` is what a person waits for: everything but the storms, which take minutes each.
import { ROOMS } from './import-rules.ts'
import { PROJECT, sourceFiles } from './source-files.ts'

export const TIERS = ['test', 'storm'] as const
export type Tier = (typeof TIERS)[number]

/** The command that runs a tier, as a person types it. */
const COMMAND: Record<Tier, string> = { test: 'npm test', storm: 'npm run test:storm' }

/**
 * Tests that take minutes whatever they are given: outages, hosts, kills in a row, installations on clean machines; and
 * suites of others that are held against ours.
 */
const STORMS = 'deploy/e2e/storm/'

/**
 * Each takes 15 s to two minutes of two cores, on purpose: programs, values and types that take for ever or eat the
 * memory, machines full of work, full disks, clusters and archives that are made, plans over tables that are filled.
 * What a room does in ordinary times, its other tests show.
 */
export const LONG: readonly string[] = [
  'agent/test/link/cuts.test.ts',
  'coordinator/test/bulk/slow-retries.test.ts',
  'coordinator/test/call/gone-meanwhile.test.ts',
  'coordinator/test/call/slow-judgement.test.ts',
  'coordinator/test/db/embedded.test.ts',
  'coordinator/test/db/partition-plans.test.ts',
  'coordinator/test/db/plans.test.ts',
  'coordinator/test/downloads/downloads.test.ts',
  'coordinator/test/downloads/install-script.test.ts',
  'coordinator/test/downloads/packages.test.ts',
  'coordinator/test/engine/sweep-busy.test.ts',
  'coordinator/test/http/slow-readers.test.ts',
  'coordinator/test/judging/hostile-values.test.ts',
  'coordinator/test/judging/judge.test.ts',
  'coordinator/test/runners/drain-deadline.test.ts',
  'coordinator/test/schedules/slow-inputs.test.ts',
  'coordinator/test/tools/pool.test.ts',
  'coordinator/test/workflows/compile.test.ts',
  'deploy/e2e/full-disk.test.ts',
  'deploy/e2e/installed-runtime.test.ts',
  'deploy/e2e/property.test.ts',
  'deploy/e2e/schedules.test.ts',
  'sdk/test/cli/drain.test.ts',
]

/** Outages that one room lives through alone, beside its other tests: PostgreSQL or a worker dies or falls silent. */
const OUTAGES: readonly string[] = [
  'coordinator/test/db/embedded-recovery.test.ts',
  'coordinator/test/db/silence.test.ts',
  'coordinator/test/jobs/worker-locks.test.ts',
]

/**
 * Tests that play as many rounds as there is time for: a few in `npm test`, many in a storm. See
 * `shared/test/_kit/rounds.ts`.
 */
const IN_BOTH: readonly string[] = [
  'coordinator/test/engine/agreement/accept.test.ts',
  'coordinator/test/engine/agreement/append.test.ts',
  'coordinator/test/engine/agreement/beat.test.ts',
  'coordinator/test/engine/agreement/claim.test.ts',
  'coordinator/test/engine/agreement/new-runs.test.ts',
  'sdk/test/runtime/engine/property.test.ts',
]

/** Test files of a tier whose path contains one of the filters; all of them without a filter. Sorted by path. */
export function testFiles(tier: Tier, filters: readonly string[] = []): string[] {
  const all = sourceFiles(PROJECT, '.test.ts').filter((file) => ROOMS.some((room) => file.startsWith(`${room}/`)))
  const lost = [...LONG, ...OUTAGES, ...IN_BOTH].find((file) => !all.includes(file))
  if (lost) throw new Error(`${lost} stands in tiers.ts and does not exist`)
  const isStorm = (file: string) => file.startsWith(STORMS) || LONG.includes(file) || OUTAGES.includes(file)
  const isIn = (file: string) => (isStorm(file) ? tier === 'storm' : tier === 'test' || IN_BOTH.includes(file))
  return all.filter(isIn).filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
}

/** Says why no file was found, and names the tier that has one. */
export function notFound(tier: Tier, filters: readonly string[]): string {
  const other = TIERS.find((each) => each !== tier && testFiles(each, filters).length > 0)
  const asked = filters.map((filter) => `"${filter}"`).join(' or ')
  if (other) return `${asked} belongs to the other tier: ${COMMAND[other]} -- ${filters.join(' ')}`
  return `No test file has ${asked} in its path. Name a part of one.`
}
