/** Codes of the system for a file system, or a user's share of it, without room. */
const FULL = new Set(['ENOSPC', 'EDQUOT'])

/** A sentence for somebody whose start failed on a full disk. Undefined for other errors. */
export function diskFull(error: unknown, folder: string, setting: string): string | undefined {
  return isFull(error) ? fullDiskText(folder, setting) : undefined
}

/** Which folder it is, and what to do. */
export function fullDiskText(folder: string, setting: string): string {
  return `The disk of ${folder} is full. Make room there, or set ${setting} to a folder elsewhere, and start again.`
}

export function isFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return FULL.has((error as NodeJS.ErrnoException).code ?? '') || isFull(error.cause)
}
