import type { Package } from './parse.ts'
import type { InstallSize, PackageSize } from './types.ts'

const LARGEST = 10

/** Adds up what is known. A lockfile says nothing about sizes, and a guess would be worse than none. */
export function installSize(packages: readonly Package[], sizes: Readonly<Record<string, number>> = {}): InstallSize {
  const known = packages.flatMap((pkg) => sized(pkg, sizes))
  const totalBytes = known.length === 0 ? null : known.reduce((sum, { bytes }) => sum + bytes, 0)
  const largest = [...known].sort((a, b) => b.bytes - a.bytes || a.path.localeCompare(b.path)).slice(0, LARGEST)
  const unknownFor = packages.length - known.length
  return { totalBytes, knownFor: known.length, unknownFor, largest, remark: remark(known.length, unknownFor) }
}

function sized({ name, version, path }: Package, sizes: Readonly<Record<string, number>>): PackageSize[] {
  const bytes = Object.hasOwn(sizes, path) ? sizes[path] : undefined
  if (bytes === undefined) return []
  if (!Number.isFinite(bytes) || bytes < 0)
    throw new Error(`input.sizes[${JSON.stringify(path)}] must be a number of bytes, but is ${bytes}.`)
  return [{ name, version, path, bytes }]
}

function remark(known: number, unknown: number): string {
  if (known === 0)
    return 'A lockfile holds no sizes. Give `sizes`, which measure.ts reads from an installed node_modules folder.'
  if (unknown === 0) return 'Measured for every package.'
  return (
    `Measured for ${known} packages; ${unknown} were not installed where it was measured, ` +
    'most likely because they are for another platform.'
  )
}
