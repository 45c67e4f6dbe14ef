const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization']
const REDACTED = '[redacted]'
/** Of one header; they have 16 KiB together. */
const MOST_CHARS = 8000

/** The headers as they are stored and handed on: without what lets somebody in. */
export function withoutCredentials(
  headers: Readonly<Record<string, string | undefined>>,
  secretHeader?: string,
): Record<string, string> {
  const hidden = new Set([...CREDENTIALS, ...(secretHeader === undefined ? [] : [secretHeader.toLowerCase()])])
  const shown: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) shown[name] = hidden.has(name) ? REDACTED : storable(value)
  return shown
}

/** PostgreSQL's text holds no U+0000, and UTF-8 no half of a surrogate pair. */
export function storable(value: string, mostChars = MOST_CHARS): string {
  return value.slice(0, mostChars).replaceAll('\0', '\ufffd').toWellFormed()
}
