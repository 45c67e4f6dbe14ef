import { readFile } from 'node:fs/promises'
import { Fault } from '@windlass/shared/errors.ts'
import { PARTS } from './parts.ts'

/**
 * What may stand in the script as our address: no character that means anything to a shell. Narrower than what a URL may have, as
 * the address may come from a header of the request.
 */
const ADDRESS = /^https?:\/\/([\w.-]{1,253}|\[[\da-fA-F:.]{2,45}\])(:\d{1,5})?(\/[\w~-][\w.~-]*)*$/

/** The script that installs the agent of this version from `base`. */
export async function installScript(base: string, version: string): Promise<string> {
  if (!ADDRESS.test(base)) {
    throw new Fault(
      'VALIDATION_FAILED',
      { path: 'Host' },
      'The header Host is no plain name or address with a port; set WINDLASS_BASE_URL on the coordinator to the address that all may use.',
    )
  }
  const [script, undo] = await Promise.all([PARTS.install, PARTS.undo].map((part) => readFile(part, 'utf8')))
  const text = script!.replace('. ./undo.sh\n', () => undo!)
  return text.replaceAll('@BASE@', base).replaceAll('@VERSION@', version)
}
