import { clip } from './clip.ts'
import { jsonText } from './json-text.ts'

const STACK_CHARACTERS = 8_000

/**
 * The data of an event as JSON. JSON makes `{}` of an error: here it keeps its name, message, stack and cause. Null
 * where JSON has no way to say it.
 */
export function eventText(data: unknown): string | null {
  // Fields that libraries hang on their errors, such as a socket, may be no JSON; then they are left out.
  return jsonText(data, errorsIn(isAnything)) ?? jsonText(data, errorsIn(isPlain))
}

type Replacer = (this: unknown, key: string, value: unknown) => unknown

const isAnything = () => true
const isPlain = (value: unknown) => typeof value !== 'object' || value === null

function errorsIn(isIncluded: (field: unknown) => boolean): Replacer {
  const seen = new Set<Error>()
  return function replace(_key, value) {
    if (!(value instanceof Error)) return value
    if (seen.has(value)) return `${value.name}: ${value.message}`
    seen.add(value)
    return factsOf(value, isIncluded)
  }
}

function factsOf(error: Error, isIncluded: (field: unknown) => boolean): Record<string, unknown> {
  const { name, message, stack, cause } = error
  const shown = typeof stack === 'string' ? clip(stack, STACK_CHARACTERS) : undefined
  const facts: Record<string, unknown> = { name, message, stack: shown }
  for (const [field, value] of Object.entries(error)) if (isIncluded(value)) facts[field] = value
  // These two are not enumerable.
  if (cause !== undefined) facts['cause'] = cause
  if (error instanceof AggregateError) facts['errors'] = error.errors
  return facts
}
