import { type Effort, FIELD } from './effort.ts'

/**
 * Whether a pattern of a descriptor means an event: its own name and everything beneath it. `*` stands for any part.
 * `pull_request` and `pull_request.*` are the same.
 */
export function matchesEvent(pattern: string, event: string | null, effort: Effort): boolean {
  effort.spend(FIELD)
  if (pattern === '*') return true
  if (event === null) return false
  const own = pattern.endsWith('.*') ? pattern.slice(0, -2) : pattern
  const means = (one: string) => matchesGlob(globOf(one, effort), event, effort)
  return means(own) || means(`${own}.*`)
}

/** A longer text fits no pattern with `*`: what is compared is chosen by those who post, many times for a delivery. */
const MOST_CHARS = 10_000

/** V8 looks for more than 250 characters at once in a time that grows with their number and the text's, multiplied. */
const MOST_AT_ONCE = 200

function placeOf(part: string, { text, from }: { text: string; from: number }, effort: Effort): number {
  if (part.length <= MOST_AT_ONCE) return text.indexOf(part, from)
  const head = part.slice(0, MOST_AT_ONCE)
  let at = text.indexOf(head, from)
  while (at !== -1 && !text.startsWith(part, at)) {
    effort.spend(part.length)
    at = text.indexOf(head, at + 1)
  }
  return at
}

/** A pattern, taken apart at its `*`. */
export interface Glob {
  length: number
  first: string
  /** Undefined: it has no `*`. */
  last: string | undefined
  between: readonly string[]
}

export function globOf(pattern: string, effort: Effort): Glob {
  effort.spend(pattern.length)
  const [first = '', ...between] = pattern.split('*')
  const last = between.pop()
  return { length: pattern.length, first, last, between }
}

/** With `*` for any characters. The parts between them are looked for in turn, each behind the one before it. */
export function matchesGlob({ length, first, last, between }: Glob, text: string, effort: Effort): boolean {
  effort.spend(length)
  if (last === undefined) return text === first
  if (text.length > MOST_CHARS || text.length < first.length + last.length) return false
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  effort.spend(text.length)
  const end = text.length - last.length
  let from = first.length
  for (const part of between) {
    const at = placeOf(part, { text, from }, effort)
    if (at === -1 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}
