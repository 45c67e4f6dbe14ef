/** The value as JSON, or null where JSON has no way to say it: bigints, cycles, a toJSON that throws. */
export function jsonText(value: unknown): string | null {
  try {
    return JSON.stringify(value)
  } catch {
    // The caller words the refusal: it knows what the value was for.
    return null
  }
}
