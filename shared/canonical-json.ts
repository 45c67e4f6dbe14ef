/** JSON text that is the same for equal values, in whatever order their fields stand. Undefined for undefined. */
export function canonicalJson(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, held: unknown) =>
    typeof held === 'object' && held !== null && !Array.isArray(held) ? sorted(held) : held,
  )
}

function sorted(object: object): object {
  const fields = Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1))
  // Unlike an assignment this keeps a field named `__proto__`.
  return Object.fromEntries(fields)
}
