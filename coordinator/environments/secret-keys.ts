import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Seat } from './row.ts'
import { type KeyFile, readKeyFile, stateOfKeyFile } from './key-file.ts'
import { type Key, open, readKeys, seal, sealedWith } from './sealing.ts'

/** By what secrets are sealed and opened at the moment. */
export interface KeyRing {
  fingerprints: readonly string[]
  seal(seat: Seat, text: string): string
  /** Throws SECRETS_UNAVAILABLE where the key is missing or the row is not what was sealed. */
  open(seat: Seat, sealed: string): string
}

/** The keys of this coordinator, as they are now: a file that changes is read again. */
export interface SecretKeys {
  /** Throws SECRETS_UNAVAILABLE when there are none. */
  ring(): Promise<KeyRing>
}

export interface KeySettings {
  /** Keys themselves, separated by commas. */
  secretKey: string | undefined
  /** Path of the file of keys. */
  secretKeyFile: string | undefined
}

const SET_ONE =
  'This coordinator has no key for secrets. Set WINDLASS_SECRET_KEY_FILE (or WINDLASS_SECRET_KEY) to one made by `openssl rand -base64 32`, and start it again.'

export function openSecretKeys({ secretKey, secretKeyFile }: KeySettings, log: Log): SecretKeys {
  if (secretKeyFile !== undefined) return ofFile(secretKeyFile, log)
  const keys = secretKey === undefined ? [] : readKeys(secretKey)
  const ring = keys.length > 0 ? ringOf(keys, log) : undefined
  return {
    ring: () =>
      ring ? Promise.resolve(ring) : Promise.reject(new Fault('SECRETS_UNAVAILABLE', { reason: 'no key' }, SET_ONE)),
  }
}

function ofFile(path: string, log: Log): SecretKeys {
  let known: { file: KeyFile; ring: KeyRing } | undefined
  return {
    async ring() {
      try {
        // A few system calls for each use; whoever rotates keys need not tell anybody.
        if (known && (await stateOfKeyFile(path)) === known.file.state) return known.ring
        const file = await readKeyFile(path)
        known = { file, ring: ringOf(file.keys, log) }
        return known.ring
      } catch (error) {
        const { message } = error as Error
        log.error('secrets.keyFile', { path, error: message })
        throw new Fault('SECRETS_UNAVAILABLE', { reason: 'no key' }, `Secrets cannot be used: ${message}.`)
      }
    },
  }
}

export function ringOf(keys: readonly Key[], log: Log): KeyRing {
  const byFingerprint = new Map(keys.map((key) => [key.fingerprint, key]))
  return {
    fingerprints: [...byFingerprint.keys()],
    seal: (seat, text) => seal(keys[0]!, seat, text),
    open(seat, sealed) {
      const fingerprint = sealedWith(sealed)
      const key = byFingerprint.get(fingerprint)
      if (!key) throw missing(seat, fingerprint)
      const text = open(key, seat, sealed)
      if (text !== undefined) return text
      log.error('secret.broken', { orgId: seat.orgId, environment: seat.environment, secret: seat.name })
      throw broken(seat)
    },
  }
}

function missing({ name, environment }: Seat, fingerprint: string): Fault {
  return new Fault(
    'SECRETS_UNAVAILABLE',
    { reason: 'key missing', secret: name, environment: environment || null, key: fingerprint },
    `The secret \`${name}\` is sealed with the key ${fingerprint}, which this coordinator does not have. Add that key to its keys, or set the secret again.`,
  )
}

function broken({ name, environment }: Seat): Fault {
  return new Fault(
    'SECRETS_UNAVAILABLE',
    { reason: 'not what was sealed', secret: name, environment: environment || null },
    `The secret \`${name}\` does not open: its row is not what was sealed for this place. Set it again.`,
  )
}
