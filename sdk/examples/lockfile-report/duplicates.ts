import type { Package } from './parse.ts'
import type { Duplicate, DuplicateVersion } from './types.ts'

/** Packages in more than one version. Several copies of one version are no duplicate by themselves. */
export function findDuplicates(packages: readonly Package[]): Duplicate[] {
  return [...grouped(packages, (pkg) => pkg.name)]
    .map(([name, copies]) => ({ name, copies: copies.length, versions: versionsOf(copies) }))
    .filter(({ versions }) => versions.length > 1)
    .sort((a, b) => b.versions.length - a.versions.length || b.copies - a.copies || a.name.localeCompare(b.name))
}

function versionsOf(copies: readonly Package[]): DuplicateVersion[] {
  return [...grouped(copies, (pkg) => pkg.version)]
    .map(([version, same]) => ({ version, paths: same.map((pkg) => pkg.path).sort() }))
    .sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }))
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    groups.set(key, [...(groups.get(key) ?? []), item])
  }
  return groups
}
