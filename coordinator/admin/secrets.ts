import { Fault } from '@windlass/shared/errors.ts'
import { createLog } from '@windlass/shared/log.ts'
import * as rotation from '../environments/rotate.ts'
import { openSecretKeys } from '../environments/secret-keys.ts'
import { areKeys } from '../environments/sealing.ts'
import type { Admin } from './open.ts'

export type Rotated = rotation.Rotated

/** Where the coordinators have their keys. */
export type KeySource = { file: string } | { given: string }

/** Seals all secrets with the first key, which with a file is a new one. Coordinators go on meanwhile. */
export function rotateKey({ db, operator }: Admin, source: KeySource): Promise<rotation.Rotated> {
  const keyFile = 'file' in source ? source.file : undefined
  const secretKey = 'given' in source ? source.given : undefined
  if (secretKey !== undefined && !areKeys(secretKey))
    throw new Fault(
      'VALIDATION_FAILED',
      { path: 'WINDLASS_SECRET_KEY' },
      'WINDLASS_SECRET_KEY is no key of 32 bytes in base64, nor several with commas.',
    )
  // What is wrong with the file is said by the error itself.
  const log = createLog({ process: 'admin' }, 'error', { write: () => undefined })
  const secretKeys = openSecretKeys({ secretKey, secretKeyFile: keyFile }, log)
  return rotation.rotateKey({ db, secretKeys, keyFile }, operator)
}

/** Takes keys out of the file that nothing is sealed with any more. */
export function retireKeys({ db, operator }: Admin, file: string): Promise<rotation.Retired> {
  return rotation.retireKeys({ db }, operator, file)
}
