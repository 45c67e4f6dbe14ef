import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { FileChange, SourceFile } from '@windlass/shared/model/workflow.ts'
import type { Source } from './sources.ts'

/** What a new version is made of: all its files, or what differs from the version that is current. */
export interface Update {
  files?: SourceFile[] | undefined
  changes?: FileChange[] | undefined
  /** The version that the sender has seen. */
  baseVersion?: number | undefined
}

/** All files of the new version. Those that are not sent are told to `take`, as what came with the request was. */
export async function filesAfter(
  { files, changes, baseVersion }: Update,
  current: Source,
  take: (bytes: number) => void,
): Promise<SourceFile[]> {
  if (files && changes) throw refused('changes', 'leaves no doubt by itself: give `files` or `changes`, not both')
  if (files) return files
  if (!changes) throw refused('files', 'is required: all files of the package; or give `changes` and `baseVersion`')
  if (baseVersion === undefined) throw refused('baseVersion', 'is required: the version that the changes are made to')
  await refuseLost(changes, current)
  const others = await current.others(new Set(changes.map(({ path }) => path)), take)
  return [...others, ...changes.flatMap(({ path, content }) => (content === null ? [] : [{ path, content }]))]
}

/** Refuses changes to a version that another deploy has taken the place of. */
export function assertBase({ baseVersion }: Update, { version }: { version: number }): void {
  if (baseVersion === undefined || baseVersion === version) return
  const message = `The current version is ${version}, not ${baseVersion}: read what has changed, and change that.`
  throw new Fault('CONFLICT', { path: 'baseVersion', version }, message)
}

/** Refuses a path that comes twice, and one that is to go and is not there. */
async function refuseLost(changes: readonly FileChange[], current: Source): Promise<void> {
  const known = await current.paths()
  const paths = new Set(known)
  const seen = new Set<string>()
  for (const [at, { path, content }] of changes.entries()) {
    if (seen.has(path)) throw refused(`changes[${at}].path`, 'is there twice')
    seen.add(path)
    if (content === null && !paths.has(path))
      throw refused(`changes[${at}].path`, `names no file of the current version${didYouMean(path, known)}`)
  }
}

function refused(path: string, fault: string): Fault {
  return new Fault('VALIDATION_FAILED', { path }, `\`${path}\` ${fault}`)
}
