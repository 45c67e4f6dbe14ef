/** What a provider asks before it sends anything, and what it is to be answered. Undefined: it asks nothing. */
export function handshakeOf(kind: string, payload: unknown): { challenge?: string } | undefined {
  if (kind !== 'slack' || typeof payload !== 'object' || payload === null) return undefined
  const { ssl_check: sslCheck, type, challenge } = payload as Record<string, unknown>
  if (sslCheck === '1') return {}
  if (type !== 'url_verification') return undefined
  return typeof challenge === 'string' ? { challenge } : {}
}
