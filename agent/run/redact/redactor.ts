import { buildAutomaton } from './automaton.ts'
import { formsOf, isTooShort, LEAST_BYTES } from './forms.ts'
import type { Interruptible } from './in-slices.ts'
import { hideInJson } from './json-text.ts'
import { createRedactionStream, CUT, STARS, type RedactionStream } from './stream.ts'

/** Keeps the secrets of a run out of whatever leaves its program. */
export interface Redactor {
  /** Names of what is too short to be hidden. */
  readonly tooShort: readonly string[]
  /** What it takes in memory, in about. */
  readonly bytes: number
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

/** Of large secrets that takes seconds. Throws `TooMuchToFind` when their redactor would take more memory than that. */
export function* buildRedactor(secrets: SecretValues, mostBytes = Infinity): Interruptible<Redactor> {
  const names = [...secrets]
  const tooShort = names.filter(([, values]) => [...values].some(isTooShort)).map(([name]) => name)
  const values = new Set(names.flatMap(([, all]) => [...all]).filter((value) => !isTooShort(value)))
  const automaton = yield* buildAutomaton(formsOfAll(values), mostBytes)
  const { occursIn, depth, found, step } = automaton
  const stream = () => createRedactionStream(automaton)

  /** Most texts stay the very same. */
  function plain(text: string): string {
    if (text.length < LEAST_BYTES) return text
    const bytes = Buffer.from(text)
    if (!occursIn(bytes)) return text
    const own = stream()
    return Buffer.concat([own.push(bytes), own.end()]).toString()
  }

  /**
   * Whole secrets, and what one begins with where it was cut off. In one look: a secret may hold the mark of a cut itself, and one form of a
   * long secret is the beginning of another.
   */
  function withCuts(text: string, isCut: boolean): string {
    const bytes = Buffer.from(text)
    const hidden: { from: number; to: number }[] = []
    const mark = (start: number, to: number) => {
      let from = start
      while (hidden.length > 0 && hidden.at(-1)!.to >= from) from = Math.min(from, hidden.pop()!.from)
      hidden.push({ from, to })
    }
    const markCut = (begun: number, to: number) => {
      const length = depth(begun)
      if (length >= LEAST_CUT_BYTES) mark(to - length, to)
    }
    let state = 0
    for (let at = 0; at < bytes.length; at++) {
      if (isCutOff(bytes, at, isCut)) markCut(state, at)
      state = step(state, bytes, at)
      const longest = found(state)
      if (longest !== 0) mark(at + 1 - longest, at + 1)
    }
    if (isCut) markCut(state, bytes.length)
    let at = 0
    const between = hidden.map(({ from, to }) => {
      const before = bytes.toString('utf8', at, from)
      at = to
      return before
    })
    return [...between, bytes.toString('utf8', at)].join(STARS)
  }

  const text = (given: string, isCut = false) => (isCut || given.includes(CUT) ? withCuts(given, isCut) : plain(given))

  return {
    tooShort,
    bytes: automaton.bytes,
    text,
    json: (json) => hideInJson(json, { text, occursIn }),
    stream,
  }
}

function* formsOfAll(values: ReadonlySet<string>) {
  for (const value of values) yield* formsOf(value)
}

const MARK = Buffer.from(CUT)

/** What half a character becomes, where a cut went through it. */
const HALF = Buffer.from('\ufffd')

/** Here a text that was cut has its end, perhaps in the midst of a character. */
function isCutOff(bytes: Buffer, at: number, isCut: boolean): boolean {
  if (isMark(bytes, at)) return true
  if (bytes[at] !== HALF[0] || bytes[at + 1] !== HALF[1] || bytes[at + 2] !== HALF[2]) return false
  return isMark(bytes, at + HALF.length) || (isCut && at + HALF.length === bytes.length)
}

function isMark(bytes: Buffer, at: number): boolean {
  return bytes[at] === MARK[0] && bytes[at + 1] === MARK[1] && bytes[at + 2] === MARK[2]
}
