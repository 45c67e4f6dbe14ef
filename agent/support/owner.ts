import { lstatSync } from 'node:fs'
import type { Located } from './located.ts'

/**
 * Makes root the user whose agent this is, for as long as this process lives; everybody else stays who he is. Programs
 * of runs may have that user and write where it may: root would follow the links that they put there, and make, change
 * and give away files elsewhere. Answers with the user, or undefined where nothing has changed.
 */
export function becomeOwner({ settingsFile, home }: { home: string } & Pick<Located, 'settingsFile'>) {
  if (process.geteuid?.() !== 0) return undefined
  // The owner of the settings says which folder it is.
  const owner = [settingsFile, home].map(ownerOf).find((found) => found !== undefined && found.uid !== 0)
  if (!owner) return undefined
  process.setgroups?.([owner.gid])
  process.setgid?.(owner.gid)
  process.setuid?.(owner.uid)
  return owner.uid
}

/** A link belongs to whoever made it, wherever it leads. */
function ownerOf(file: string | undefined): { uid: number; gid: number } | undefined {
  return file === undefined ? undefined : lstatSync(file, { throwIfNoEntry: false })
}
