/** A whole number within bounds. */
export function isInt(
  value: unknown,
  least = Number.MIN_SAFE_INTEGER,
  most = Number.MAX_SAFE_INTEGER,
): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
}

export function isText(value: unknown, most = Infinity): value is string {
  return typeof value === 'string' && value.length <= most
}

export function listOf(most: number, fits: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.length <= most && value.every(fits)
}
