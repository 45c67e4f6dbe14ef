export interface JsonTrouble {
  offset: number
  line: number
  column: number
  message: string
}

/** Where a text that `JSON.parse` refused stops being JSON, and what would have had to come. */
export function findTrouble(text: string): JsonTrouble {
  const { offset, expected } = firstWrong(text)
  const { line, column } = locationOf(offset, text)
  const found = offset >= text.length ? 'the end' : JSON.stringify(String.fromCodePoint(text.codePointAt(offset) ?? 0))
  return { offset, line, column, message: `expected ${expected} at line ${line}, column ${column}, found ${found}` }
}

/** The search below would take a second of a body of 64 MiB, in which nobody else is served. */
const MOST_SEARCHED = 1_000_000

/** What is wrong with a text that `JSON.parse` refused with the error; of a large one what the error itself says. */
export function troubleOf(text: string, error: unknown): { message: string; location: Partial<Location> } {
  if (text.length > MOST_SEARCHED) return saidBy(error)
  const { message, offset, line, column } = findTrouble(text)
  return { message: `: ${message}`, location: { offset, line, column } }
}

type Location = Omit<JsonTrouble, 'message'>

/** The parser names no place for a character that it did not expect, and quotes what stands around it. */
function saidBy(error: unknown): { message: string; location: Partial<Location> } {
  const { message } = error as Error
  if (message.includes('Unexpected end')) return { message: ': it ends too early', location: {} }
  const found = / in JSON at position (\d+) \(line (\d+) column (\d+)\)$/.exec(message)
  if (!found) return { message: ', and too long for the place to be told', location: {} }
  const [offset = 0, line = 0, column = 0] = found.slice(1).map(Number)
  const why = message.slice(0, found.index)
  return { message: `: ${why} at line ${line}, column ${column}`, location: { offset, line, column } }
}

/** Counts one character after the other: a body may be 30 MB of line ends, which are not to be made a list. */
function locationOf(offset: number, text: string): { line: number; column: number } {
  let line = 1
  let start = 0
  for (let at = 0; at < offset; at++) {
    if (text.charCodeAt(at) !== 0x0a) continue
    line++
    start = at + 1
  }
  return { line, column: offset - start + 1 }
}

const SPACE = /[ \t\n\r]*/y
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

type State = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or the end' | 'the end'

const EXPECTED: Record<State, string> = {
  value: 'a value',
  'value or ]': 'a value or `]`',
  name: 'a quoted name',
  'name or }': 'a quoted name or `}`',
  ':': '`:`',
  ', or the end': '`,` or the closing bracket',
  'the end': 'nothing more',
}

/** Reads the text with a stack of its own, since nesting may be as deep as the text is long. */
function firstWrong(text: string): { offset: number; expected: string } {
  const open: ('{' | '[')[] = []
  let state: State = 'value'
  let at = 0
  // Each turn takes at least one character or returns.
  for (;;) {
    at = match(SPACE, text, at) ?? at
    const wrong = { offset: at, expected: EXPECTED[state] }
    const char = text[at]
    if (char === undefined) return wrong
    const afterValue = (): State => (open.length === 0 ? 'the end' : ', or the end')
    if ((char === '}' || char === ']') && closes(char, state, open)) {
      open.pop()
      state = afterValue()
      at++
    } else if (state === ', or the end' && char === ',') {
      state = open.at(-1) === '{' ? 'name' : 'value'
      at++
    } else if (state === ':' && char === ':') {
      state = 'value'
      at++
    } else if (state === 'name' || state === 'name or }' || (isValue(state) && char === '"')) {
      if (char !== '"') return wrong
      const end = stringEnd(text, at)
      if (typeof end !== 'number') return end
      state = isValue(state) ? afterValue() : ':'
      at = end
    } else if (isValue(state) && (char === '{' || char === '[')) {
      open.push(char)
      state = char === '{' ? 'name or }' : 'value or ]'
      at++
    } else {
      const end = isValue(state) ? match(SCALAR, text, at) : undefined
      if (end === undefined) return wrong
      state = afterValue()
      at = end
    }
  }
}

function isValue(state: State): boolean {
  return state === 'value' || state === 'value or ]'
}

function closes(char: '}' | ']', state: State, open: readonly string[]): boolean {
  if (open.at(-1) !== (char === '}' ? '{' : '[')) return false
  return state === ', or the end' || state === (char === '}' ? 'name or }' : 'value or ]')
}

function stringEnd(text: string, start: number): number | { offset: number; expected: string } {
  for (let at = start + 1; ; at++) {
    const code = text.charCodeAt(at)
    if (Number.isNaN(code)) return { offset: at, expected: 'the closing quote of a string' }
    if (code === 0x22) return at + 1
    if (code < 0x20) return { offset: at, expected: 'control characters in strings to be escaped' }
    if (code !== 0x5c) continue
    const end = match(ESCAPE, text, at)
    if (end === undefined) return { offset: at, expected: 'a valid escape such as `\\n` or `\\u00e9`' }
    at = end - 1
  }
}

function match(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}
