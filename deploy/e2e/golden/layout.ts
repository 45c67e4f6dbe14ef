const WIDTH = 118

/**
 * JSON for reading: what fits stands in one line; else an item of a list has a line of its own, and fields share lines.
 */
export function layout(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const line = inOneLine(value)
  if (indent.length + line.length <= WIDTH) return line
  const deeper = `${indent}  `
  if (Array.isArray(value)) {
    const items = value.map((each) => deeper + layout(each, deeper))
    return `[\n${items.join(',\n')}\n${indent}]`
  }
  const fields = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${layout(each, deeper)}`)
  return `{\n${packed(fields, deeper).join(',\n')}\n${indent}}`
}

/** Names and values, as many in a line as fit. */
export function filled(record: object, indent = ''): string {
  const fields = Object.entries(record).map(([name, value]) => {
    return `${name}: ${typeof value === 'string' ? value : layout(value, indent)}`
  })
  return packed(fields, indent).join('\n')
}

/** A field that takes several lines begins and ends the line of nobody else. */
function packed(fields: readonly string[], indent: string): string[] {
  const lines: string[] = []
  let isOpen = false
  for (const field of fields) {
    const isLong = field.includes('\n')
    const last = lines.at(-1) ?? ''
    const isRoom = isOpen && !isLong && last.length + field.length + 2 <= WIDTH
    if (isRoom) lines[lines.length - 1] = `${last}, ${field}`
    else lines.push(indent + field)
    isOpen = !isLong
  }
  return lines
}

function inOneLine(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(inOneLine).join(', ')}]`
  const fields = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${inOneLine(each)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}
