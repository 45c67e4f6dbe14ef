import { Fault } from '@windlass/shared/errors.ts'

const LONGEST = 100

/** What people call a key, a session or an org, if it can be stored and shown on any terminal. */
export function nameOf(text: string): string {
  const isPlain = text.isWellFormed() && !/\p{Cc}/u.test(text)
  if (isPlain && text.trim() !== '' && text.length <= LONGEST) return text
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'name' },
    `\`name\` must have 1 to ${LONGEST} characters that are not all spaces, and no control characters.`,
  )
}
