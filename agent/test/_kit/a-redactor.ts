import type { Interruptible } from '../../run/redact/in-slices.ts'
import { buildRedactor, type Redactor, type SecretValues } from '../../run/redact/redactor.ts'

/** One for secrets by their names. */
export function aRedactor(secrets: Record<string, string>): Redactor {
  return redactorOf(new Map(Object.entries(secrets).map(([name, value]) => [name, new Set([value])])))
}

export const redactorOf = (secrets: SecretValues): Redactor => inOneGo(buildRedactor(secrets))

export function inOneGo<T>(work: Interruptible<T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

/** What comes out of bytes that arrive in pieces of these lengths, the last of which is repeated. */
export function through(redactor: Redactor, bytes: Buffer, lengths: readonly number[]): Buffer {
  const stream = redactor.stream()
  const parts: Buffer[] = []
  for (let at = 0, piece = 0; at < bytes.length; piece++) {
    const length = lengths[Math.min(piece, lengths.length - 1)] ?? bytes.length
    parts.push(Buffer.from(stream.push(bytes.subarray(at, at + length))))
    at += length
  }
  return Buffer.concat([...parts, stream.end()])
}
