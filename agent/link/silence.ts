import { setImmediate as nextTurn } from 'node:timers/promises'

/** Fires `signal` when too little was heard for too long. A body that goes on may take as long as it needs. */
export interface Silence {
  readonly signal: AbortSignal
  heard(bytes: number): void
  end(): void
}

/** Each `leastBytes` have this time, so that what comes drop by drop has an end as well. */
export function createSilence(ms: number, leastBytes: number): Silence {
  const over = new AbortController()
  let bytes = 0
  const late = () => over.abort(new Error(`only ${bytes} bytes have come in ${ms} ms`))
  let timer = setTimeout(late, ms)
  return {
    signal: over.signal,
    heard(more) {
      bytes += more
      if (bytes < leastBytes) return
      bytes = 0
      clearTimeout(timer)
      timer = setTimeout(late, ms)
    },
    end: () => clearTimeout(timer),
  }
}

/** Each piece of a body is heard, and what else waits has its turn behind it. */
export async function hearPieces(
  body: ReadableStream<Uint8Array> | null,
  { heard }: Pick<Silence, 'heard'>,
  onBytes: (bytes: Buffer) => void,
): Promise<void> {
  for await (const { buffer, byteOffset, byteLength } of body ?? []) {
    heard(byteLength)
    onBytes(Buffer.from(buffer, byteOffset, byteLength))
    await nextTurn()
  }
}
