import { Fault } from '@windlass/shared/errors.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'
import { endOfString } from '@windlass/shared/json-nesting.ts'

/** Only a large exponent, or very many digits, make a number that is none any more, or another. */
const MAY_LOSE = /[\d.][eE]\+?\d{3}|\d{16}/
const MANY_DIGITS = 16
/** The start of a text, or a number, up to more characters than one needs: the rest of it is not read. */
const TOKEN = /"|-?\d[\d.eE+-]{0,5000}/g
const MOST_CHARS = 5000

/**
 * Refuses numbers that would be something else than was sent: JSON has no infinity, so it would be stored as null, and
 * a whole number beyond 2^53, such as an id of 64 bits, would end in other digits. Fractions are rounded everywhere,
 * and pass. The text is JSON. One pass to the first such number, however many values there are.
 */
export function refuseLossyNumbers(text: string): void {
  if (!hasLongNumber(text)) return
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const [token] = match
    if (token === '"') TOKEN.lastIndex = endOfString(text, match.index)
    else if (token.length > MOST_CHARS) throw tooLong(pathTo(text, match.index))
    else if (MAY_LOSE.test(token) && isChanged(Number(token), token)) throw lossy(token, pathTo(text, match.index))
  }
}

/** Whether a number outside of strings has many digits or a large exponent. One walk, whatever strings hold. */
function hasLongNumber(text: string): boolean {
  let digits = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= 0x30 && code <= 0x39) {
      if (++digits === MANY_DIGITS) return true
    } else {
      digits = 0
      if (code === 0x22) at = endOfString(text, at) - 1
      else if ((code === 0x65 || code === 0x45) && MAY_LOSE.test(text.slice(at - 1, at + 5))) return true
    }
  }
  return false
}

function isChanged(read: number, sent: string): boolean {
  if (!Number.isFinite(read)) return true
  return !Number.isSafeInteger(read) && /^-?\d+$/.test(sent) && BigInt(sent) !== BigInt(read)
}

/** Brackets, names and commas on the way to a place of a JSON text. */
const STEP = /["[\]{},]/g

function pathTo(whole: string, offset: number): string {
  // What follows may be long, without a step in it.
  const text = whole.slice(0, offset)
  const path: (string | number)[] = []
  const isArray: boolean[] = []
  STEP.lastIndex = 0
  for (let match = STEP.exec(text); match; match = STEP.exec(text)) {
    const [char] = match
    const inArray = isArray.at(-1)
    if (char === '"') {
      const end = endOfString(text, match.index)
      // A text in front of a colon is a name; the last one before the place is the one that leads there.
      if (inArray === false && /^\s*:/.test(text.slice(end, end + 64)))
        path[path.length - 1] = nameOf(text.slice(match.index, end))
      STEP.lastIndex = end
    } else if (char === '[' || char === '{') {
      isArray.push(char === '[')
      path.push(char === '[' ? 0 : '')
    } else if (char === ',') {
      if (inArray) path[path.length - 1] = Number(path.at(-1)) + 1
    } else {
      isArray.pop()
      path.pop()
    }
  }
  return fieldPath(path)
}

/** A path shows the beginning of a long name, for which not all of it has to be read. */
const MOST_NAME_CHARS = 10_000

function nameOf(quoted: string): string {
  if (quoted.length > MOST_NAME_CHARS) return quoted.slice(1, MOST_NAME_CHARS)
  return JSON.parse(quoted) as string
}

function tooLong(path: string): Fault {
  const message = `${path}: is a number of more than ${MOST_CHARS} characters; send it as a text.`
  return new Fault('VALIDATION_FAILED', { path }, message)
}

function lossy(sent: string, path: string): Fault {
  const read = Number(sent)
  const why = Number.isFinite(read)
    ? `is ${sent}, which a number of JSON cannot keep: it would become ${BigInt(read)}`
    : 'is a number beyond 1.8e308'
  return new Fault('VALIDATION_FAILED', { path }, `${path}: ${why}; send it as a text.`)
}
