import { Fault } from '@windlass/shared/errors.ts'

/** Room for every id and name; more is no key but a payload. */
const KEY_CHARACTERS = 255

/** The key of body or header. Given in both it has to be the same. */
export function keyOf(inBody: string | undefined, inHeader: string | undefined): string | undefined {
  if (inBody !== undefined && inHeader !== undefined && inBody !== inHeader)
    throw invalid('is given in the body and, with another value, as the header `Idempotency-Key`: leave one out')
  // Above ASCII a header has no agreed encoding: two keys might arrive as one.
  if (inHeader !== undefined && !/^[\x20-\x7e]*$/.test(inHeader))
    throw invalid('as a header it takes ASCII characters only; send this one as `idempotencyKey` in the body')
  const key = inBody ?? inHeader
  if (key === undefined) return undefined
  if (key === '' || key.length > KEY_CHARACTERS) throw invalid(`must have 1 to ${KEY_CHARACTERS} characters`)
  if (key.includes('\0') || !key.isWellFormed())
    throw invalid('holds U+0000 or half of a surrogate pair, which cannot be stored; leave it out')
  return key
}

function invalid(message: string): Fault {
  return new Fault('VALIDATION_FAILED', { path: 'idempotencyKey' }, `idempotencyKey: ${message}.`)
}
