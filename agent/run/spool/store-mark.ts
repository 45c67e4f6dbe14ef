import { createHash } from 'node:crypto'
import { folderMark } from '../../os/folder-mark.ts'
import { bootId } from '../../os/process-id.ts'

const HEX_CHARS = 16

/**
 * Name of this folder in this boot of the machine; empty where boots have no names. What is missing in its files was
 * not written: after a power cut, or in a copy, it may have been.
 */
export function thisStore(folder: string): string {
  const boot = bootId()
  if (boot === '') return ''
  return createHash('sha256')
    .update(`${boot} ${folderMark(folder)}`)
    .digest('hex')
    .slice(0, HEX_CHARS)
}
