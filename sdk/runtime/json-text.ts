/** The value as JSON, or null where JSON has no way to say it: bigints, cycles, a toJSON that throws. */
export function jsonText(
  value: unknown,
  replacer?: (this: unknown, key: string, value: unknown) => unknown,
): string | null {
  try {
    return JSON.stringify(value, replacer)
  } catch {
    // The caller words the refusal: it knows what the value was for.
    return null
  }
}

/** As in shared, of which a runtime takes types only: the coordinator reads nothing deeper. */
export const MOST_LEVELS = 500

export function nestsTooDeep(text: string): boolean {
  return text.length > 2 * MOST_LEVELS && !nestsWithin(JSON.parse(text), MOST_LEVELS)
}

function nestsWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => nestsWithin(inner, levels - 1))
}
