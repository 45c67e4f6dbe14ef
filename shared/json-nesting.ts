/** Deeper nesting than this no honest value has, while printing it again would overflow the stack. */
export const MOST_LEVELS = 500

/** True when arrays and objects nest deeper than `levels`. One pass, and none for texts too short for it. */
export function nestsDeeper(text: string, levels: number): boolean {
  if (text.length <= 2 * levels) return false
  let depth = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 0x22) index = endOfString(text, index) - 1
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > levels) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}

/** True when no array or object in the value lies deeper than `levels`. */
export function nestsWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => nestsWithin(inner, levels - 1))
}

/** Marks of a JSON text outside of strings. Each of them costs its parser far more than a character of a string. */
export interface Marks {
  /** Brackets that open an array or an object. */
  opened: number
  /** Colons, one a name. */
  names: number
  commas: number
  /** Characters outside of strings, blanks too, and of names: they cost more than those of other strings. */
  plain?: number
}

/** What a JSON value of a caller's choice may have in its 1 MiB: to parse and print more lists stops everybody else. */
export const MOST_MARKS_OF_INPUT: Marks = { opened: 300_000, names: Infinity, commas: Infinity }

/** True when a text has more of one kind of mark than there may be. One pass to the first mark too many. */
export function hasMoreMarks(text: string, most: Marks): boolean {
  if (text.length <= Math.min(most.opened, most.names, most.commas)) return false
  return countMarks(text, most) === undefined
}

/** The marks of a text, or undefined when it has more of one kind than there may be. */
export function countMarks(text: string, most: Marks): Marks | undefined {
  const found = { opened: 0, names: 0, commas: 0 }
  const { plain = Infinity } = most
  let ofValues = 0
  let ofLast = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      const end = endOfString(text, at)
      ofLast = end - at
      ofValues += ofLast
      at = end - 1
    } else if (code === 0x5b || code === 0x7b) {
      if (++found.opened > most.opened) return undefined
    } else if (code === 0x3a) {
      ofValues -= ofLast
      if (++found.names > most.names) return undefined
    } else if (code === 0x2c && ++found.commas > most.commas) return undefined
    if (at - ofValues > plain) return undefined
  }
  return found
}

/** Quotes as near to one another are found faster one by one, for as many characters. */
const NEAR = 32
const STEP = 1024

/** The index behind the closing quote of the string that starts at `start`, or the length of the text. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; ;) {
    // JSON within JSON has millions of backslashes and few quotes.
    const quote = text.indexOf('"', at)
    if (quote === -1) return text.length
    let first = quote
    while (first > at && text.charCodeAt(first - 1) === BACKSLASH) first--
    if ((quote - first) % 2 === 0) return quote + 1
    const isNear = quote - at < NEAR
    at = quote + 1
    if (!isNear) continue
    for (const end = Math.min(text.length, at + STEP); at < end; at++) {
      const code = text.charCodeAt(at)
      if (code === BACKSLASH) at++
      else if (code === QUOTE) return at + 1
    }
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
