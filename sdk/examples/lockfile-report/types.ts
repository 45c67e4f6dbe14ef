export interface Input {
  /** The text of a package-lock.json, of lockfileVersion 2 or 3 (npm 7 and later). */
  lockfile: string
  /** What to call the project in the report; the name in the lockfile when left out. */
  name?: string
  /**
   * Installed bytes of each package by its path, such as `node_modules/zod`. A lockfile has no sizes: `measure.ts`
   * beside this workflow reads them from a node_modules folder.
   */
  sizes?: Record<string, number>
}

export interface Report {
  /** Name of the project. */
  name: string
  lockfileVersion: number
  packages: PackageCounts
  /** Packages that are installed in more than one version, most copies first. */
  duplicates: Duplicate[]
  licences: Licences
  size: InstallSize
}

export interface PackageCounts {
  /** Installed copies, without the project's own workspaces. */
  total: number
  /** Different names among them. */
  names: number
  /** Named by the project or one of its workspaces. */
  direct: number
  /** There only because something else needs them. */
  transitive: number
  /** Not needed in production. */
  dev: number
  /** May be missing, often because they are for another platform. */
  optional: number
  /** That run a script when they are installed. */
  withInstallScript: number
  /** Fetched as a tarball from a registry or another address. */
  tarballs: number
  /** Folders of the project itself. */
  workspaces: number
}

export interface Duplicate {
  name: string
  /** Installed copies, all versions together. */
  copies: number
  versions: DuplicateVersion[]
}

export interface DuplicateVersion {
  version: string
  /** Where it is installed. */
  paths: string[]
}

export interface Licences {
  /** Most frequent first. */
  counts: LicenceCount[]
  /** Packages of which the lockfile names no licence, as `name@version`. */
  unknown: string[]
}

interface LicenceCount {
  /** An SPDX expression, as the package gives it. */
  licence: string
  packages: number
}

export interface InstallSize {
  /** Bytes of all packages whose size is known; null when none is. */
  totalBytes: number | null
  /** For how many packages the size is known. */
  knownFor: number
  /** For how many it is not: on another platform they would be installed, or no sizes were given. */
  unknownFor: number
  /** The ten largest, largest first. */
  largest: PackageSize[]
  /** What the figures above stand for. */
  remark: string
}

export interface PackageSize {
  name: string
  version: string
  path: string
  bytes: number
}
