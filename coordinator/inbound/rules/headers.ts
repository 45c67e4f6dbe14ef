import { createHash, timingSafeEqual } from 'node:crypto'

const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization']
/** As providers call headers that hold a secret: `X-Gitlab-Token`, `X-Api-Key`, `X-Original-Authorization`. */
const SECRET_NAME =
  /(?:^|-)(?:authorization|token|secret|password|api-?key|(?:access|auth|functions|subscription)-key)$/
const REDACTED = '[redacted]'
/** Of one header; they have 16 KiB together. */
const MOST_CHARS = 8000

export type Headers = Readonly<Record<string, string | undefined>>

/** The header of a name that a connection has chosen: every object has a `constructor`. */
export function headerOf(headers: Headers, name: string): string | undefined {
  const key = name.toLowerCase()
  return Object.hasOwn(headers, key) ? headers[key] : undefined
}

export interface Hiding {
  /** Header that holds the secret itself, as the connection names it. */
  secretHeader?: string | undefined
  /** Headers by which the source judges a delivery: they are stored whatever they are called. */
  judgedBy: readonly string[]
  /** Those that serve now. A sender may put one where nobody looks for it. */
  secrets: readonly string[]
}

/** The headers as they are stored and handed on: without what lets somebody in. */
export function withoutCredentials(headers: Headers, { secretHeader, judgedBy, secrets }: Hiding) {
  const hidden = new Set([...CREDENTIALS, ...(secretHeader === undefined ? [] : [secretHeader.toLowerCase()])])
  const needed = new Set(judgedBy.map((name) => name.toLowerCase()))
  const isHidden = (name: string) => hidden.has(name) || (SECRET_NAME.test(name) && !needed.has(name))
  const holds = holderOf(secrets)
  const shown: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) shown[name] = isHidden(name) || holds(value) ? REDACTED : storable(value)
  return shown
}

/** Whether a value is a secret, begins or ends with one, or has one between spaces, commas, colons and the like. */
function holderOf(secrets: readonly string[]): (value: string) => boolean {
  // Libraries of Standard Webhooks take the secret without its prefix as well.
  const bare = secrets.flatMap((secret) => (secret.startsWith('whsec_') ? [secret.slice(6)] : []))
  const sought = [...secrets, ...bare].map((text) => ({ length: text.length, digest: digestOf(text) }))
  return (value) =>
    sought.some(({ length, digest }) => partsOf(value, length).some((part) => timingSafeEqual(digestOf(part), digest)))
}

/** Of one length alone: a stranger's 16 KiB are not to cost thousands of digests. */
function partsOf(value: string, length: number): string[] {
  if (value.length < length) return []
  const pieces = value.split(/[\s,;:"']+/).flatMap((piece) => [piece, piece.slice(piece.indexOf('=') + 1)])
  return [value.slice(0, length), value.slice(-length), ...pieces.filter((piece) => piece.length === length)]
}

const digestOf = (text: string) => createHash('sha256').update(text).digest()

/** PostgreSQL's text holds no U+0000, and UTF-8 no half of a surrogate pair. */
export function storable(value: string, mostChars = MOST_CHARS): string {
  return value.slice(0, mostChars).replaceAll('\0', '\ufffd').toWellFormed()
}
