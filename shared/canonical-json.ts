/** Length of a piece: well under a millisecond of work. Only a long string makes a longer one. */
const PIECE_CHARS = 4096
/** So many items of an array are printed in one call. */
const ITEMS_AT_ONCE = 256
/** Names that JavaScript puts first, in the order of their numbers. */
const INDEX = /^(?:0|[1-9]\d{0,9})$/
const MOST_INDEX = 2 ** 32 - 2

/** An array or object that is being printed. */
interface Open {
  end: ']' | '}'
  /** Prints what comes next, up to the first value that is printed by itself; undefined at the end. */
  next: () => Printed | undefined
}

interface Printed {
  text: string
  nested?: object | undefined
}

/**
 * JSON text that is the same for equal values, in whatever order their fields stand; in pieces, so that others can
 * have their turn in between. Takes time in proportion to the text, and only the names of one object are sorted in one
 * go. The value is one that JSON.parse returns; fields that are undefined are left out.
 */
export function* canonicalJson(value: unknown): Generator<string> {
  const stack: Open[] = []
  let text = ''
  const print = (printed: Printed) => {
    text += printed.text
    if (!printed.nested) return
    const isArray = Array.isArray(printed.nested)
    text += isArray ? '[' : '{'
    stack.push(isArray ? openArray(printed.nested as unknown[]) : openObject(printed.nested))
  }
  print(isNested(value) ? { text: '', nested: value } : { text: JSON.stringify(value) })
  for (let top = stack.at(-1); top; top = stack.at(-1)) {
    const printed = top.next()
    if (printed) print(printed)
    else text += stack.pop()!.end
    if (text.length < PIECE_CHARS) continue
    yield text
    text = ''
  }
  yield text
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null

function openArray(items: readonly unknown[]): Open {
  let at = 0
  const next = () => {
    if (at >= items.length) return undefined
    const comma = at > 0 ? ',' : ''
    const item = items[at]
    if (isNested(item)) {
      at++
      return { text: comma, nested: item }
    }
    const from = at
    const most = Math.min(items.length, from + ITEMS_AT_ONCE)
    while (at < most && !isNested(items[at])) at++
    return { text: comma + JSON.stringify(items.slice(from, at)).slice(1, -1) }
  }
  return { end: ']', next }
}

function openObject(object: object): Open {
  const fields = object as Record<string, unknown>
  const names = inOrder(Object.keys(fields))
  let at = 0
  let comma = ''
  const next = () => {
    while (at < names.length && fields[names[at]!] === undefined) at++
    if (at >= names.length) return undefined
    const name = names[at++]!
    const text = `${comma}${JSON.stringify(name)}:`
    comma = ','
    const value = fields[name]
    return isNested(value) ? { text, nested: value } : { text: text + JSON.stringify(value) }
  }
  return { end: '}', next }
}

/** Names that are in order already, as most are that a machine writes, cost one look each. */
function inOrder(names: string[]): string[] {
  let from = 0
  while (from < names.length && isIndex(names[from]!)) from++
  const isSorted = names.every((name, at) => at <= from || names[at - 1]! < name)
  return isSorted ? names : [...names.slice(0, from), ...names.slice(from).sort()]
}

function isIndex(name: string): boolean {
  const first = name.charCodeAt(0)
  return first >= 0x30 && first <= 0x39 && INDEX.test(name) && Number(name) <= MOST_INDEX
}
