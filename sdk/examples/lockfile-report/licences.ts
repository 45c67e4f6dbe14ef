import type { Package } from './parse.ts'
import type { Licences } from './types.ts'

export function countLicences(packages: readonly Package[]): Licences {
  const counts = new Map<string, number>()
  const unknown: string[] = []
  for (const { name, version, licence } of packages) {
    if (licence === undefined) unknown.push(`${name}@${version}`)
    else counts.set(licence, (counts.get(licence) ?? 0) + 1)
  }
  return {
    counts: [...counts]
      .map(([licence, number]) => ({ licence, packages: number }))
      .sort((a, b) => b.packages - a.packages || a.licence.localeCompare(b.licence)),
    unknown: unknown.sort(),
  }
}
