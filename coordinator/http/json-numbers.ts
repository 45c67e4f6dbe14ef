import { Fault } from '@windlass/shared/errors.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'

/** Only a large exponent, or very many digits, make a number that is none any more, or another. */
const MAY_LOSE = /[\d.][eE]\+?\d{3}|\d{16}/

/**
 * Refuses numbers that would be something else than was sent: JSON has no infinity, so it would be stored as null, and a whole
 * number beyond 2^53, such as an id of 64 bits, would end in other digits. Fractions are rounded everywhere, and pass.
 */
export function refuseLossyNumbers(text: string): void {
  if (!MAY_LOSE.test(text)) return
  let isLossy = false
  const value: unknown = JSON.parse(text, ((_name: string, inner: unknown, context: { source?: string }) => {
    if (typeof inner !== 'number' || !isChanged(inner, context.source ?? '')) return inner
    isLossy = true
    return new Lossy(inner, context.source ?? '')
  }) as (this: unknown, name: string, inner: unknown) => unknown)
  if (isLossy) refuseFirst(value, [])
}

class Lossy {
  readonly kept: number
  readonly sent: string

  constructor(kept: number, sent: string) {
    this.kept = kept
    this.sent = sent
  }
}

function isChanged(kept: number, sent: string): boolean {
  if (!Number.isFinite(kept)) return true
  return !Number.isSafeInteger(kept) && /^-?\d+$/.test(sent) && BigInt(sent) !== BigInt(kept)
}

function refuseFirst(value: unknown, at: readonly PropertyKey[]): void {
  if (value instanceof Lossy) throw lossy(value, fieldPath(at))
  if (Array.isArray(value)) for (const [i, inner] of value.entries()) refuseFirst(inner, [...at, i])
  else if (typeof value === 'object' && value !== null)
    for (const [key, inner] of Object.entries(value)) refuseFirst(inner, [...at, key])
}

function lossy({ kept, sent }: Lossy, path: string): Fault {
  const why = Number.isFinite(kept)
    ? `is ${sent}, which a number of JSON cannot keep: it would become ${BigInt(kept)}`
    : 'is a number beyond 1.8e308'
  return new Fault('VALIDATION_FAILED', { path }, `${path}: ${why}; send it as a text.`)
}
