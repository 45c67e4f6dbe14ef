import { MOST_LEVELS, nestsDeeper } from '@windlass/shared/json-nesting.ts'

/**
 * Text that a program calls JSON, on one line as event streams want it: line breaks can stand between values only, since
 * strings hold them escaped. Undefined when it is no JSON, or nests so deep that readers could not parse it. It goes to them as
 * it came, so it is looked at once, here.
 */
export function jsonLine(text: string): string | undefined {
  if (nestsDeeper(text, MOST_LEVELS)) return undefined
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return text.replace(/[\r\n]/g, ' ')
}
