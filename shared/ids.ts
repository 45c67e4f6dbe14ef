import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'
import { z } from 'zod'

/** Crockford's base32 in lower case: no i, l, o, u, and the order of the characters is the order of their values. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** The nouns that have ids, by their prefix. */
export type IdPrefix =
  | 'run'
  | 'wf'
  | 'ver'
  | 'pool'
  | 'rnr'
  | 'org'
  | 'key'
  | 'ses'
  | 'env'
  | 'sch'
  | 'inp'
  | 'aud'
  | 'hook'
  | 'conn'
  | 'dlv'
  | 'job'
  | 'rtok'
  | 'req'
export type Id<P extends IdPrefix> = string & z.$brand<P>
export type RunId = Id<'run'>
export type WorkflowId = Id<'wf'>
export type VersionId = Id<'ver'>
export type PoolId = Id<'pool'>
export type RunnerId = Id<'rnr'>
export type OrgId = Id<'org'>
export type KeyId = Id<'key'>
export type SessionId = Id<'ses'>
export type EnvironmentId = Id<'env'>
export type ScheduleId = Id<'sch'>
export type InputId = Id<'inp'>
export type AuditId = Id<'aud'>
export type HookId = Id<'hook'>
export type ConnectionId = Id<'conn'>
export type DeliveryId = Id<'dlv'>
export type JobId = Id<'job'>
export type RegistrationTokenId = Id<'rtok'>

/** A new id: prefix, underscore, and a UUIDv7 in 26 characters, so that ids sort by their time of creation. */
export function newId<P extends IdPrefix>(prefix: P): Id<P> {
  const msecs = Math.max(Date.now(), last.msecs)
  const random = randomBytes()
  // Within a millisecond ids are in the order of their creation too: the bits behind the time count on.
  const seq = msecs > last.msecs ? new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1 : last.seq + 1
  last = { msecs, seq }
  return `${prefix}_${base32(v7({ random, msecs, seq }, new Uint8Array(16)))}` as Id<P>
}

let last = { msecs: 0, seq: 0 }

/** Random bytes for 256 ids: one call to the system for each id would take 10 µs of its 13. */
const POOL = new Uint8Array(16 * 256)
let poolAt = POOL.length

function randomBytes(): Uint8Array {
  if (poolAt === POOL.length) {
    randomFillSync(POOL)
    poolAt = 0
  }
  return POOL.subarray(poolAt, (poolAt += 16))
}

/** Sorts before all ids of this moment, in milliseconds since the epoch, and behind all earlier ones. */
export function firstIdAt<P extends IdPrefix>(prefix: P, ms: number): Id<P> {
  const bytes = new Uint8Array(16)
  // The first 48 bits of a UUIDv7.
  new DataView(bytes.buffer).setBigUint64(0, BigInt(Math.floor(ms)) << 16n)
  return `${prefix}_${base32(bytes)}` as Id<P>
}

/** When an id was made, in milliseconds since the epoch by the clock of its maker. */
export function timeOf(id: string): number {
  const digits = id.slice(id.indexOf('_') + 1).slice(0, 10)
  return digits.split('').reduce((ms, digit) => ms * 32 + ALPHABET.indexOf(digit), 0)
}

/** 128 bits in 26 characters of 5 bits; the first carries the top 3 bits only. */
function base32(bytes: Uint8Array): string {
  let text = ''
  let pending = 0
  let bits = 2
  for (const byte of bytes) {
    pending = (pending << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET[(pending >>> bits) & 31]
    }
    pending &= (1 << bits) - 1
  }
  return text
}

function idSchema<P extends IdPrefix>(prefix: P, noun: string) {
  return z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`), `must be the id of ${noun}, such as ${prefix}_01jd…`)
    .brand<P>()
}

export const RunId = idSchema('run', 'a run')
export const WorkflowId = idSchema('wf', 'a workflow')
export const VersionId = idSchema('ver', 'a workflow version')
export const PoolId = idSchema('pool', 'a runner pool')
export const RunnerId = idSchema('rnr', 'a runner')
export const InputId = idSchema('inp', 'a pending input')
export const OrgId = idSchema('org', 'an org')
export const KeyId = idSchema('key', 'an API key')
export const EnvironmentId = idSchema('env', 'an environment')
export const ScheduleId = idSchema('sch', 'a schedule')
export const AuditId = idSchema('aud', 'an entry of the audit log')
export const HookId = idSchema('hook', 'a webhook')
export const DeliveryId = idSchema('dlv', 'a delivery')
export const ConnectionId = idSchema('conn', 'a connection')
export const JobId = idSchema('job', 'a job')
export const RegistrationTokenId = idSchema('rtok', 'a registration token')

/** What a person names things by in addresses: lower case, digits and dashes, 1 to 63 characters. */
export const Slug = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'must be lower-case letters, digits and dashes, 1 to 63 characters')

/**
 * What its id and its name both address; a name is never taken for an id, as it has no underscore. Not a union: that
 * would not say of a bad value what would do.
 */
function refSchema(prefix: IdPrefix, noun: string, name: string) {
  const message = `must be the ${name} of ${noun}, or its id, such as ${prefix}_01jd…`
  return z
    .string()
    .regex(new RegExp(`^(?:${prefix}_[0-9a-hjkmnp-tv-z]{26}|[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)$`), message)
    .meta({ description: `${name[0]!.toUpperCase()}${name.slice(1)} or id of ${noun}.` })
}

export const WorkflowRef = refSchema('wf', 'a workflow', 'slug')
export type WorkflowRef = z.output<typeof WorkflowRef>

export const EnvironmentRef = refSchema('env', 'an environment', 'name')
export type EnvironmentRef = z.output<typeof EnvironmentRef>

export const PoolRef = refSchema('pool', 'a runner pool', 'name')
export type PoolRef = z.output<typeof PoolRef>
