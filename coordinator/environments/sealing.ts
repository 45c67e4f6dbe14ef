import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { SECRET_KEY } from '../settings.ts'
import type { Seat } from './row.ts'

// A sealed value is `v1.<fingerprint of the key>.<nonce>.<ciphertext and tag>`: AES-256-GCM, the last two in base64url. What it is
// and where it belongs is sealed along with it, so that a row moved elsewhere does not open.

const ALGORITHM = 'aes-256-gcm'
const VERSION = 'v1'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const FINGERPRINT_CHARACTERS = 12

export interface Key {
  /** Names the key and tells nothing of it. */
  fingerprint: string
  bytes: Buffer
}

/** A key as people keep it: 32 bytes in base64. Undefined for anything else. */
export function readKey(text: string): Key | undefined {
  if (!SECRET_KEY.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  return { bytes, fingerprint: fingerprintOf(bytes) }
}

/** What WINDLASS_SECRET_KEY holds: each is a key, or the settings would have been refused. */
export function readKeys(text: string): Key[] {
  return text.split(',').map((one) => readKey(one.trim())!)
}

export function areKeys(text: string): boolean {
  return text.split(',').every((one) => SECRET_KEY.test(one.trim()))
}

export function newKeyText(): string {
  return randomBytes(KEY_BYTES).toString('base64')
}

function fingerprintOf(key: Buffer): string {
  return createHmac('sha256', key).update('windlass secret key').digest('hex').slice(0, FINGERPRINT_CHARACTERS)
}

export function seal(key: Key, seat: Seat, text: string): string {
  // Random nonces of 96 bits: one key may seal some billion values before two would be alike.
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key.bytes, nonce)
  cipher.setAAD(belonging(seat))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return [VERSION, key.fingerprint, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
}

/** The fingerprint of the key that opens it. */
export function sealedWith(sealed: string): string {
  return sealed.split('.')[1] ?? ''
}

/** Undefined: this is not what was sealed with this key for this seat. */
export function open(key: Key, seat: Seat, sealed: string): string | undefined {
  const [version, , nonce = '', body = ''] = sealed.split('.')
  const bytes = Buffer.from(body, 'base64url')
  if (version !== VERSION || bytes.length < TAG_BYTES) return undefined
  try {
    const options = { authTagLength: TAG_BYTES }
    const decipher = createDecipheriv(ALGORITHM, key.bytes, Buffer.from(nonce, 'base64url'), options)
    decipher.setAAD(belonging(seat))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

/** As JSON, so that no two seats have the same. */
function belonging({ orgId, environment, name }: Seat): Buffer {
  return Buffer.from(JSON.stringify(['windlass secret', VERSION, orgId, environment, name]))
}
