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

/** The text of a body, of which each piece is heard. */
export async function textOf(
  body: ReadableStream<Uint8Array> | null,
  { heard }: Pick<Silence, 'heard'>,
): Promise<string> {
  const pieces: Uint8Array[] = []
  for await (const piece of body ?? []) {
    heard()
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}
