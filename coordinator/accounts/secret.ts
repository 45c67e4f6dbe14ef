import { hash } from 'node:crypto'
import { Fault } from '@windlass/shared/errors.ts'

/**
 * By this a secret is found. The random part has 238 bits, so nothing slower than one SHA-256 is needed to keep it from being
 * guessed. Nor does the time of a look-up tell how much of a guess was right: what is compared, in our cache and in the
 * database's index, are bytes of the hash, and nobody can choose the first bytes of a hash without trying as often as it takes.
 * What is refused before, by prefix, length and checksum, anybody can work out for himself.
 */
export function digest(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

export function unauthenticated(message: string): Fault {
  return new Fault('UNAUTHENTICATED', undefined, message)
}
