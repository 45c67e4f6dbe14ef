import type { Lockfile, Package } from './parse.ts'
import type { PackageCounts } from './types.ts'

export function countPackages({ packages, workspaces }: Lockfile): PackageCounts {
  const count = (test: (pkg: Package) => boolean) => packages.filter(test).length
  const direct = count((pkg) => pkg.isDirect)
  return {
    total: packages.length,
    names: new Set(packages.map((pkg) => pkg.name)).size,
    direct,
    transitive: packages.length - direct,
    dev: count((pkg) => pkg.isDev),
    optional: count((pkg) => pkg.isOptional),
    withInstallScript: count((pkg) => pkg.hasInstallScript),
    tarballs: count((pkg) => pkg.isTarball),
    workspaces: workspaces.length,
  }
}
