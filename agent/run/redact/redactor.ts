import { createAutomaton } from './automaton.ts'
import { formsOf, isTooShort, LEAST_BYTES } from './forms.ts'
import { hideInJson } from './json-text.ts'
import { createRedactionStream, CUT, STARS, type RedactionStream } from './stream.ts'

/** Keeps the secrets of a run out of whatever leaves its program. */
export interface Redactor {
  /** Names of what is too short to be hidden. */
  readonly tooShort: readonly string[]
  /** `isCut`: it goes on, or went on, behind its end. What a secret begins with is hidden there, and before each `…`. */
  text(text: string, isCut?: boolean): string
  /** JSON stays JSON. */
  json(json: string): string
  stream(): RedactionStream
}

/** A name may have had several values while its run went on. */
export type SecretValues = ReadonlyMap<string, ReadonlySet<string>>

/** Shorter beginnings of a secret stand before a cut by chance, and say little. */
const LEAST_CUT_BYTES = LEAST_BYTES

export function createRedactor(secrets: SecretValues): Redactor {
  const names = [...secrets]
  const tooShort = names.filter(([, values]) => [...values].some(isTooShort)).map(([name]) => name)
  const values = new Set(names.flatMap(([, all]) => [...all]).filter((value) => !isTooShort(value)))
  const automaton = createAutomaton([...values].flatMap(formsOf))
  const { occursIn } = automaton
  const stream = () => createRedactionStream(automaton)

  /** Most texts stay the very same. */
  function plain(text: string): string {
    if (text.length < LEAST_BYTES) return text
    const bytes = Buffer.from(text)
    if (!occursIn(bytes)) return text
    const own = stream()
    return Buffer.concat([own.push(bytes), own.end()]).toString()
  }

  function withoutBeginning(text: string): string {
    const own = stream()
    own.push(Buffer.from(text))
    if (own.heldBytes < LEAST_CUT_BYTES) return text
    const held = Buffer.from(text).subarray(-own.heldBytes).toString()
    return text.slice(0, -held.length) + STARS
  }

  function text(given: string, isCut = false): string {
    const whole = plain(given)
    if (!isCut && !whole.includes(CUT)) return whole
    const pieces = whole.split(CUT)
    const last = pieces.length - 1
    return pieces.map((piece, index) => (index < last || isCut ? withoutBeginning(piece) : piece)).join(CUT)
  }

  return {
    tooShort,
    text,
    json: (json) => hideInJson(json, { text, occursIn }),
    stream,
  }
}
