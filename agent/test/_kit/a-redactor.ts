import { createRedactor, type Redactor } from '../../run/redact/redactor.ts'

/** One for secrets by their names. */
export function aRedactor(secrets: Record<string, string>): Redactor {
  return createRedactor(new Map(Object.entries(secrets).map(([name, value]) => [name, new Set([value])])))
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
