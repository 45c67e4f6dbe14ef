import { textForms } from './text-forms.ts'

/**
 * What is shorter occurs by chance in every text: to hide it would make logs unreadable, and show by its stars where it is. Of
 * four bytes each derived form is at least four characters long as well.
 */
export const LEAST_BYTES = 4

/** Beyond this a program that shows single bytes does not show a secret, but a file. Node itself shows 50 of a Buffer. */
const BYTE_LIST_BYTES = 256
const BUFFER_SHOWN_BYTES = 50
/** And of a text in an object, an array or an error. */
const TEXT_SHOWN_CHARACTERS = 10_000
/** What `base64` and what PEM break their lines at. */
const WRAPS = [76, 64]

/**
 * Everything as which a secret may turn up in a text. Longer than the secrets by about sixteen times, and by forty
 * where much of them has to be escaped. Undefined stands
 * between forms that take long to make, so that something else may be done meanwhile.
 */
export function* formsOf(secret: string): Generator<Buffer | undefined> {
  const parts = partsOf(secret)
  yield undefined
  for (const part of parts) for (const text of shownOf(part)) yield* distinct(yield* textFormsInPieces(text))
  // Whoever encodes bytes takes the whole of it, and may have cut the line break at its end.
  for (const whole of new Set([secret, secret.trim()])) yield* distinct(byteForms(Buffer.from(whole)))
}

function* distinct(forms: readonly string[]): Generator<Buffer> {
  const seen = new Set<string>()
  for (const form of forms) {
    if (seen.has(form)) continue
    seen.add(form)
    const bytes = Buffer.from(form)
    if (bytes.length >= LEAST_BYTES) yield bytes
  }
}

/** Whole characters, of which the forms take some milliseconds. */
const PIECE = /[^]{1,2048}/gu

/** Each of them is made character by character: that of a long text is those of its pieces. */
function* textFormsInPieces(text: string): Generator<undefined, string[]> {
  const [first = '', ...rest] = text.match(PIECE) ?? []
  let forms = textForms(first)
  for (const piece of rest) {
    yield undefined
    const more = textForms(piece)
    forms = forms.map((form, at) => form + more[at]!)
  }
  return forms
}

export const isTooShort = (secret: string) => Buffer.byteLength(secret.trim()) < LEAST_BYTES

/** Keys and certificates are printed line by line, indented perhaps. Where all lines are hidden, the whole is. */
function partsOf(secret: string): string[] {
  const whole = secret.trim()
  const lines = whole
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const hasShort = lines.some((line) => Buffer.byteLength(line) < LEAST_BYTES)
  return lines.length === 1 || hasShort ? [whole, ...lines] : lines
}

const shownOf = (text: string) =>
  text.length <= TEXT_SHOWN_CHARACTERS ? [text] : [text, text.slice(0, TEXT_SHOWN_CHARACTERS)]

function byteForms(bytes: Buffer): string[] {
  const hex = bytes.toString('hex')
  const shown = bytes.subarray(0, BUFFER_SHOWN_BYTES).toString('hex')
  const spaced = shown.replace(/..(?=.)/g, '$& ')
  const few = bytes.length <= BYTE_LIST_BYTES ? [bytes.join(','), bytes.join(', ')] : []
  return [hex, hex.toUpperCase(), spaced, spaced.toUpperCase(), ...few, ...base64Forms(bytes)]
}

/**
 * Base64 writes three bytes as four characters, so a secret within something longer looks different at each of three places. Its
 * first and last character may depend on what stands beside it: those are left out.
 */
function base64Forms(bytes: Buffer): string[] {
  const inner = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    const first = Math.ceil((shift * 8) / 6)
    return text.slice(first, Math.floor(((shift + bytes.length) * 8) / 6))
  })
  const alone = bytes.toString('base64')
  const forms = [...inner, alone, ...WRAPS.flatMap((width) => wrapped(alone, width))]
  return [...forms, ...forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''))]
}

function wrapped(text: string, width: number): string[] {
  if (text.length <= width) return []
  const lines = text.match(new RegExp(`.{1,${width}}`, 'g')) ?? []
  // A short last one is that of many texts: a line break at their end alone makes one.
  return lines.filter(({ length }) => length >= 2 * LEAST_BYTES)
}
