import { log, phase } from 'windlass'
import { countPackages } from './count.ts'
import { findDuplicates } from './duplicates.ts'
import { countLicences } from './licences.ts'
import { parseLockfile } from './parse.ts'
import { installSize } from './size.ts'
import type { Input, Report } from './types.ts'

/** Licences under which passing a program on may oblige to publish one's own. */
const STRONG = /\b(A?GPL|SSPL|EUPL|OSL)\b/

/** Reads an npm lockfile and reports what it brings in. */
export async function run(input: Input): Promise<Report> {
  phase('parse')
  const lockfile = parseLockfile(input.lockfile)
  const { packages, lockfileVersion } = lockfile
  const name = input.name ?? lockfile.name
  log(`${name}: ${packages.length} packages, lockfileVersion ${lockfileVersion}`)

  phase('count')
  const counts = countPackages(lockfile)
  if (counts.withInstallScript > 0) log(`${counts.withInstallScript} packages run a script when they are installed`)

  phase('duplicates')
  const duplicates = findDuplicates(packages)
  for (const duplicate of duplicates)
    log(`${duplicate.name} is there in ${duplicate.versions.map((v) => v.version).join(', ')}`)

  phase('licences')
  const licences = countLicences(packages)
  if (licences.unknown.length > 0) log.warn(`no licence is named for ${licences.unknown.join(', ')}`)
  for (const { licence, packages: count } of licences.counts)
    if (STRONG.test(licence)) log.warn(`${licence}: ${count} packages`)

  phase('size')
  const size = installSize(packages, input.sizes)
  log(size.totalBytes === null ? size.remark : `${(size.totalBytes / 1e6).toFixed(1)} MB installed`)

  return { name, lockfileVersion, packages: counts, duplicates, licences, size }
}
