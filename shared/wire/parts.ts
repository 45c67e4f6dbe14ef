/**
 * A long frame of an agent travels in parts, each a WebSocket message of its own: `+` (more comes) or `.` (the last
 * one), then the lane, then a piece of the frame's text. Nobody counts what has come of a message that has no end yet,
 * so messages are short. The parts of a lane follow each other; frames that are whole, and parts of the other lane, may
 * come between them: a heartbeat does not wait for an output of 8 MiB.
 */
export type Lane = 'entries' | 'others'

export interface Part {
  lane: Lane
  isLast: boolean
  text: string
}

/** Characters of a frame that is sent whole, and of a part, at most. 192 KiB in UTF-8. */
export const PART_CHARS = 64 * 1024
/** What a part has at least that is not the last one: over a slow line parts are short. */
export const LEAST_PART_CHARS = 4 * 1024
/** What the socket takes in one message: a part, with its mark. */
export const MESSAGE_BYTES = 256 * 1024

const LETTER = { entries: 'e', others: 'o' } as const

/** The messages that bring a frame: itself, or its parts. `partChars` is asked before each, as a line may change. */
export function messagesOf(text: string, lane: Lane, partChars = (): number => PART_CHARS): Iterable<string> {
  return text.length <= partChars() ? [text] : partsOf(text, lane, partChars)
}

function* partsOf(text: string, lane: Lane, partChars: () => number): Generator<string> {
  for (let from = 0; from < text.length;) {
    const to = endOf(text, from + partChars())
    yield `${to < text.length ? '+' : '.'}${LETTER[lane]}${text.slice(from, to)}`
    from = to
  }
}

/** Undefined for a frame that came whole. */
export function partOf(message: string): Part | undefined {
  const mark = message[0]
  if (mark !== '+' && mark !== '.') return undefined
  const lane = message[1] === LETTER.entries ? 'entries' : 'others'
  return { lane, isLast: mark === '.', text: message.slice(2) }
}

/** Half of a pair of surrogates has no UTF-8. */
function endOf(text: string, end: number): number {
  const isPair = /[\uD800-\uDBFF]/.test(text[end - 1] ?? '')
  return isPair && end < text.length ? end - 1 : end
}
