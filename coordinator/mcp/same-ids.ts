/**
 * Whether two requests have the same id. The library answers the first of them, and then no more: the others would go
 * on behind an answer that nobody waits for.
 */
export function haveSameIds(messages: readonly { id?: unknown; method?: unknown }[]): boolean {
  const ids = messages.filter(({ id, method }) => id !== undefined && method !== undefined).map(({ id }) => id)
  return new Set(ids).size < ids.length
}
