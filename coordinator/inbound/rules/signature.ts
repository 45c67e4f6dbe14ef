import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { BearerScheme, HmacScheme } from '@windlass/shared/model/connection.ts'
import { headerOf, type Headers } from './headers.ts'

/** What a request says of itself before its body has come. */
interface Head {
  method: string
  /** As the provider has it: where it was told to post. */
  url: string
  /** By lower-case name. */
  headers: Headers
}

/** By which scheme a source takes deliveries for its own. */
export type Auth =
  | { kind: 'webhook' | 'github' | 'stripe' | 'slack' | 'standard-webhooks' }
  | { kind: 'hmac'; hmac: HmacScheme }
  | { kind: 'bearer'; bearer: BearerScheme }

export type Verdict =
  /**
   * `once`: the signature stands for this one delivery, as a time or an id is signed with it. A sender that tries again
   * signs anew, and is known by its id; whoever sends a copy may have changed what says the id.
   */
  { isVerified: true; once?: Once } | { isVerified: false; reason: string }

export interface Once {
  /** By each secret that serves: a sender may sign with several, and a copy show the other one. */
  signatures: readonly string[]
  /** How long a copy could be taken for the first one. */
  ttlMs: number
}

/** Judges a delivery while its body comes in. */
export interface Check {
  /** Whatever the body is: it will not be verified. */
  readonly isHopeless: boolean
  update(chunk: Uint8Array): void
  end(): Verdict
}

export interface Asked {
  head: Head
  /** Those that serve now, the current one first. */
  secrets: readonly string[]
  /** When it was received, in milliseconds since the epoch. */
  at: number
}

export const NO_SECRET = 'No secret is set here yet.'

const TOLERANCE_MS = 300_000
/** How long a signature of a time is known, at least. */
const LEAST_TTL_MS = 600_000
/** Its age is judged when a delivery begins. The body of a copy may take a minute, and its turn 20 s. */
const LATE_MS = 120_000
/** One without a time serves for ever. It is known as long as ids are: providers send again for some days. */
export const ID_TTL_MS = 7 * 86_400_000

export function beginCheck(auth: Auth, asked: Asked): Check {
  if (asked.secrets.length === 0) return refused(NO_SECRET)
  switch (auth.kind) {
    case 'webhook':
      return asked.head.headers['webhook-signature'] === undefined ? windlass(asked) : standardWebhooks(asked)
    case 'github':
      return github(asked)
    case 'stripe':
      return stripe(asked)
    case 'slack':
      return slack(asked)
    case 'standard-webhooks':
      return standardWebhooks(asked)
    case 'hmac':
      return generic(auth.hmac, asked)
    default:
      return bearer(auth.bearer, asked)
  }
}

/** `t=<seconds>,v1=<hex>`, over `t.body`. */
function windlass({ head, secrets, at }: Asked): Check {
  const given = head.headers['x-windlass-signature']
  if (given === undefined) return refused(missing('X-Windlass-Signature'))
  const { t, v1 } = fieldsOf(given)
  const wrong = wrongTime(t, at)
  if (wrong) return refused(wrong)
  return signed({ keys: secrets, before: `${t}.`, wanted: v1.map(hex), onceWithinMs: TOLERANCE_MS })
}

function github({ head, secrets }: Asked): Check {
  const given = head.headers['x-hub-signature-256']
  if (given === undefined) return refused(missing('X-Hub-Signature-256'))
  if (!given.startsWith('sha256=')) return refused('`X-Hub-Signature-256` does not begin with `sha256=`.')
  return signed({ keys: secrets, wanted: [hex(given.slice(7))] })
}

/** Of Stripe the time stands in the signature's header, and several signatures while a secret is being changed. */
function stripe({ head, secrets, at }: Asked): Check {
  const given = head.headers['stripe-signature']
  if (given === undefined) return refused(missing('Stripe-Signature'))
  const { t, v1 } = fieldsOf(given)
  const wrong = wrongTime(t, at)
  if (wrong) return refused(wrong)
  return signed({ keys: secrets, before: `${t}.`, wanted: v1.map(hex), onceWithinMs: TOLERANCE_MS })
}

function slack({ head, secrets, at }: Asked): Check {
  const given = head.headers['x-slack-signature']
  const time = head.headers['x-slack-request-timestamp']
  if (given === undefined) return refused(missing('X-Slack-Signature'))
  const wrong = wrongTime(time, at)
  if (wrong) return refused(wrong)
  if (!given.startsWith('v0=')) return refused('`X-Slack-Signature` does not begin with `v0=`.')
  return signed({ keys: secrets, before: `v0:${time}:`, wanted: [hex(given.slice(3))], onceWithinMs: TOLERANCE_MS })
}

/** Signatures of other versions than `v1` are passed over, and all of that version are tried. */
function standardWebhooks({ head, secrets, at }: Asked): Check {
  const id = head.headers['webhook-id'] ?? head.headers['svix-id']
  const time = head.headers['webhook-timestamp'] ?? head.headers['svix-timestamp']
  const given = head.headers['webhook-signature'] ?? head.headers['svix-signature']
  if (id === undefined) return refused(missing('webhook-id'))
  if (given === undefined) return refused(missing('webhook-signature'))
  if (id.includes('.')) return refused(borderIn('webhook-id', '.'))
  const wrong = wrongTime(time, at)
  if (wrong) return refused(wrong)
  const wanted = given.split(' ').flatMap((one) => (one.startsWith('v1,') ? [base64(one.slice(3))] : []))
  const keys = secrets.flatMap((secret) => standardKey(secret) ?? [])
  return signed({ keys, before: `${id}.${time}.`, wanted, onceWithinMs: TOLERANCE_MS })
}

function generic(scheme: HmacScheme, { head, secrets, at }: Asked): Check {
  const { header, prefix, timestampHeader, idHeader } = scheme
  const given = headerOf(head.headers, header)
  if (given === undefined) return refused(missing(header))
  if (!given.startsWith(prefix)) return refused(`\`${header}\` does not begin with \`${prefix}\`.`)
  const time = timestampHeader === undefined ? undefined : headerOf(head.headers, timestampHeader)
  const wrong = timestampHeader === undefined ? undefined : wrongTime(time, at, scheme.toleranceMs)
  if (wrong) return refused(wrong)
  const id = idHeader === undefined ? undefined : headerOf(head.headers, idHeader)
  if (idHeader !== undefined && scheme.signed.includes('{id}') && id === undefined) return refused(missing(idHeader))
  const border = borderOf(scheme)
  if (border !== undefined && id?.includes(border)) return refused(borderIn(idHeader ?? '', border))
  const values = { timestamp: time, id, method: head.method, url: head.url }
  const [before = '', after = ''] = scheme.signed
    .split('{body}')
    .map((part) => part.replace(/\{(timestamp|id|method|url)\}/g, (_, name: keyof typeof values) => values[name] ?? ''))
  const text = given.slice(prefix.length)
  const wanted = [scheme.encoding === 'hex' ? hex(text) : base64(text)]
  const once = timestampHeader === undefined ? {} : { onceWithinMs: scheme.toleranceMs }
  // Between id and body there may be nothing that tells where one ends: with the border moved it looks like another id.
  const hasId = idHeader !== undefined && scheme.signed.includes('{id}')
  return signed({ keys: secrets, algorithm: scheme.algorithm, before, after, wanted, hasId, ...once })
}

/**
 * What ends the id where a time follows. With it in an id, a time and a body of the sender's text could be taken for
 * those of a delivery: a forged one, that looks fresh.
 */
function borderOf({ signed }: HmacScheme): string | undefined {
  return /\{id\}([^{]+)\{timestamp\}/.exec(signed)?.[1]
}

const borderIn = (header: string, border: string) =>
  `\`${header}\` has \`${border}\` in it, by which one could not tell where it ends in what is signed.`

function bearer({ header, prefix }: BearerScheme, { head, secrets }: Asked): Check {
  const given = headerOf(head.headers, header)
  if (given === undefined) return refused(missing(header))
  // The scheme of `Authorization` is written in any case.
  if (given.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase())
    return refused(`\`${header}\` does not begin with \`${prefix}\`.`)
  const shown = digestOf(given.slice(prefix.length))
  // All are compared, as digests of one length: how long it takes tells nothing.
  const isOne = secrets.map((secret) => timingSafeEqual(digestOf(secret), shown)).includes(true)
  if (!isOne) return refused(`\`${header}\` holds another secret.`)
  return { isHopeless: false, update: () => {}, end: () => ({ isVerified: true }) }
}

interface Signing {
  keys: readonly (string | Buffer)[]
  algorithm?: string
  before?: string
  after?: string
  /** Signatures as they were sent; undefined for what is none. */
  wanted: readonly (Buffer | undefined)[]
  /** Set where what is signed has a time, within this of ours. */
  onceWithinMs?: number
  /** What is signed has an id, of the sender's choice. */
  hasId?: boolean
}

function signed({ keys, algorithm = 'sha256', before = '', after = '', wanted, ...about }: Signing): Check {
  const tried = wanted.filter((one) => one !== undefined)
  if (tried.length === 0) return refused('The signature is not written as it has to be.')
  const hmacs = keys.map((key) => createHmac(algorithm, key).update(before))
  return {
    isHopeless: keys.length === 0,
    update: (chunk) => {
      for (const hmac of hmacs) hmac.update(chunk)
    },
    end() {
      const made = hmacs.map((hmac) => hmac.update(after).digest())
      const fitting = made.filter((one) => tried.map((two) => isEqual(one, two)).includes(true))
      if (fitting.length === 0)
        return { isVerified: false, reason: 'The signature does not fit: another secret, or another body.' }
      const ttlMs = ttlOf(about)
      // As we make them: the header may be written in many ways, and hold more.
      const signatures = made.map((one) => one.toString('base64'))
      return { isVerified: true, ...(ttlMs !== undefined && { once: { signatures, ttlMs } }) }
    },
  }
}

/** Undefined: another delivery may have the same signature. */
function ttlOf({ onceWithinMs, hasId = false }: Pick<Signing, 'onceWithinMs' | 'hasId'>): number | undefined {
  // A signature serves before and after its time, as long each.
  if (onceWithinMs !== undefined) return Math.max(LEAST_TTL_MS, 2 * onceWithinMs) + LATE_MS
  return hasId ? ID_TTL_MS : undefined
}

function refused(reason: string): Check {
  return { isHopeless: true, update: () => {}, end: () => ({ isVerified: false, reason }) }
}

const missing = (header: string) => `The header \`${header}\` is missing.`

function isEqual(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

const digestOf = (text: string) => createHash('sha256').update(text).digest()

function hex(text: string): Buffer | undefined {
  return /^(?:[0-9a-fA-F]{2})+$/.test(text) ? Buffer.from(text, 'hex') : undefined
}

function base64(text: string): Buffer | undefined {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
}

/** `t=1,v1=a,v1=b`. Other fields are of other schemes. */
function fieldsOf(header: string): { t: string | undefined; v1: string[] } {
  const fields = header.split(',').map((field) => field.trim().split('=', 2))
  return {
    t: fields.find(([name]) => name === 't')?.[1],
    v1: fields.flatMap(([name, value]) => (name === 'v1' && value !== undefined ? [value] : [])),
  }
}

/** Why a time of signing does not do; undefined where it does. */
function wrongTime(text: string | undefined, at: number, toleranceMs = TOLERANCE_MS): string | undefined {
  const signedAt = text === undefined ? undefined : timeOf(text)
  if (signedAt === undefined) return 'The time of signing is missing, or no time.'
  const awayMs = Math.abs(at - signedAt)
  if (awayMs <= toleranceMs) return undefined
  const seconds = Math.round(awayMs / 1000)
  return signedAt < at
    ? `It was signed ${seconds} s ago; ${toleranceMs / 1000} s are the most.`
    : `It was signed ${seconds} s ahead of our clock; ${toleranceMs / 1000} s are the most.`
}

/** Providers write seconds, milliseconds or ISO 8601. */
function timeOf(text: string): number | undefined {
  if (/^\d{1,11}$/.test(text)) return Number(text) * 1000
  if (/^\d{12,15}$/.test(text)) return Number(text)
  const ms = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** What Standard Webhooks keys the HMAC with: the bytes that the secret writes in base64. Undefined: it writes none. */
export function standardKey(secret: string): Buffer | undefined {
  const text = secret.startsWith('whsec_') ? secret.slice(6) : secret
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}
