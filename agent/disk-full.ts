/** Codes of the system for a file system, or a user's share of it, without room. */
const FULL = new Set(['ENOSPC', 'EDQUOT'])

/** A sentence for somebody whose start failed on a disk that is full or read-only. Undefined for other errors. */
export function diskTrouble(error: unknown, folder: string, setting: string): string | undefined {
  if (isFull(error)) return fullDiskText(folder, setting)
  if (!isReadOnly(error, folder)) return undefined
  return `The disk of ${folder} is read-only. ${MOUNT}, or set ${setting} to a folder elsewhere, and start again.`
}

/** Why nothing can be written into the folder while an agent works. */
export function writeTrouble(error: unknown, folder: string): string {
  if (isFull(error)) return `the disk of ${folder} takes no more: make room on it.`
  const code = codeOf(error)
  if (code === 'EROFS') return `the disk of ${folder} is read-only. ${MOUNT}.`
  return `nothing can be written into ${folder} (${code}): mend its disk, or give it back to the user of the agent.`
}

/** File systems make themselves so after an error. */
const MOUNT = 'Mount it for writing; where nobody had it read-only, the log of the kernel says why it is'

/** Which folder it is, and what to do. */
export function fullDiskText(folder: string, setting: string): string {
  return `The disk of ${folder} is full. Make room there, or set ${setting} to a folder elsewhere, and start again.`
}

export function isFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return FULL.has(codeOf(error)) || isFull(error.cause)
}

/** Parts of the system are read-only by intent, such as the cgroups of a container. */
function isReadOnly(error: unknown, folder: string): boolean {
  if (!(error instanceof Error)) return false
  const { path } = error as NodeJS.ErrnoException
  return (codeOf(error) === 'EROFS' && path?.startsWith(folder) === true) || isReadOnly(error.cause, folder)
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? 'no code'
