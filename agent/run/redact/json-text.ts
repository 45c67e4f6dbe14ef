import { CUT, STARS } from './stream.ts'

interface Hiding {
  text: (text: string) => string
  occursIn: (bytes: Buffer) => boolean
}

const STAND_IN = JSON.stringify(STARS)
/** Says nothing that one could not guess. */
const LITERALS = new Set(['true', 'false', 'null'])
/** Numbers, mostly: what is neither a text nor structure. */
const BARE = /[^\s{}[\],:]+/g
/** As `JSON.stringify` writes a Buffer. Four bytes are the least that is hidden. */
const BYTES = /(?<![\d.eE+-])\d{1,3}(?:\s*,\s*\d{1,3}){3,}(?![\d.eE])/g

/**
 * With none of these in it each of its texts is written as it is, or with escapes that stand in the forms of the secrets: then it is
 * enough to look at the whole.
 */
const NEEDS_READING = new RegExp(String.raw`\\[\\u/]|${CUT}|${BYTES.source}`)

/**
 * The same JSON without secrets. They are looked for in what its texts mean, so that it matters not how they are escaped, and
 * what is not touched stays as it is written. Of something that is not JSON all is one text.
 */
export function hideInJson(json: string, { text: hide, occursIn }: Hiding): string {
  if (!NEEDS_READING.test(json) && !occursIn(Buffer.from(json))) return json
  if (!isJson(json)) return hide(json)
  const parts: string[] = []
  let at = 0
  for (let quote = json.indexOf('"'); quote >= 0; quote = json.indexOf('"', at)) {
    parts.push(between(json.slice(at, quote)))
    at = endOfText(json, quote)
    parts.push(inText(json.slice(quote, at)))
  }
  parts.push(between(json.slice(at)))
  return parts.join('')

  function inText(token: string): string {
    const text = token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1)
    const hidden = hide(text)
    return hidden === text ? token : JSON.stringify(hidden)
  }

  function between(text: string): string {
    if (text.length < 2) return text
    return text
      .replace(BYTES, inBytes)
      .replace(BARE, (bare) => (LITERALS.has(bare) || hide(bare) === bare ? bare : STAND_IN))
  }

  function inBytes(list: string): string {
    const numbers = list.split(',').map(Number)
    const areBytes = numbers.every((number) => number < 256)
    return areBytes && occursIn(Buffer.from(numbers)) ? STAND_IN : list
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    // A program wrote what its runtime does not. Whoever reads it will say so.
    return false
  }
}

/** Behind the quote that ends what the quote at `start` begins. */
function endOfText(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); ; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0
    while (json[quote - 1 - slashes] === '\\') slashes += 1
    if (slashes % 2 === 0) return quote + 1
  }
}
