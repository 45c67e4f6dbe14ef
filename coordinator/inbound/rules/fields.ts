/** The fields of a form or a query: a name that comes again has a list. */
export function fieldsOf(pairs: URLSearchParams): Record<string, string | string[]> {
  // Lists grow in place: whoever posts chooses how long they get.
  const fields = Object.create(null) as Record<string, string | string[]>
  for (const [name, value] of pairs) {
    const before = fields[name]
    if (Array.isArray(before)) before.push(value)
    else fields[name] = before === undefined ? value : [before, value]
  }
  return fields
}
