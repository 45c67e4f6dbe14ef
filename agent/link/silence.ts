import { setImmediate as nextTurn } from 'node:timers/promises'

/** Fires `signal` when nothing was heard for so long. */
export interface Silence {
  readonly signal: AbortSignal
  heard(): void
  end(): void
}

export function createSilence(ms: number): Silence {
  const over = new AbortController()
  const late = () => over.abort(new Error(`nothing has come for ${ms} ms`))
  let timer = setTimeout(late, ms)
  return {
    signal: over.signal,
    heard() {
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
    heard()
    onBytes(Buffer.from(buffer, byteOffset, byteLength))
    await nextTurn()
  }
}
