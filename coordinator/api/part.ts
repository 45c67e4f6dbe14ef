import type { Part } from '@windlass/shared/model/part.ts'

/** Characters of a part as JSON prints them: with all that stands around it, it is an answer of a tool. */
const MOST_PRINTED = 16_000

/** What is known of a text around a part: `text` begins at `from`, and the whole has `chars` characters. */
export interface Stretch {
  text: string
  from: number
  chars: number
}

/** How much of a text has to be read for the part that begins at `offset`: with the characters next to it. */
export const stretchFor = (offset: number) => ({ from: Math.max(0, offset - 1), most: MOST_PRINTED + 2 })

/** The part that begins at `offset`, between whole characters: a half of a surrogate pair is no character. */
export function partIn({ text, from, chars }: Stretch, offset: number): { text: string; part: Part } {
  const begin = wholeBefore(text, offset - from)
  let length = MOST_PRINTED
  let shown = text.slice(begin, begin + length)
  for (let printed; (printed = JSON.stringify(shown).length - 2) > MOST_PRINTED;) {
    length = Math.floor((shown.length * MOST_PRINTED) / printed)
    shown = text.slice(begin, begin + length)
  }
  shown = text.slice(begin, wholeBefore(text, begin + shown.length))
  const end = from + begin + shown.length
  return { text: shown, part: { offset: from + begin, chars, nextOffset: end < chars ? end : null } }
}

/** This place, or the one before when it is within a pair. */
function wholeBefore(text: string, at: number): number {
  return isIn(text.charCodeAt(at - 1), 0xd800) && isIn(text.charCodeAt(at), 0xdc00) ? at - 1 : at
}

const isIn = (code: number, first: number) => code >= first && code < first + 0x400
