import type { EntryBatch } from '@windlass/shared/wire/agent.ts'

/** What a frame of entries has over a fast line. */
export const FRAME_CHARS = 512 * 1024

/** The text without its first entries. */
export function withoutFirst(json: string, count: number): string {
  const batch = JSON.parse(json) as EntryBatch
  return JSON.stringify({ ...batch, first: batch.first + count, entries: batch.entries.slice(count) })
}

/** The batches that go together in a frame: over a slow line frames are shorter, and long batches are cut. */
export function inFrames(texts: string[], mostChars: number): string[][] {
  if (mostChars >= FRAME_CHARS) return [texts]
  const frames: string[][] = []
  let chars = Infinity
  for (const text of texts.flatMap((each) => cut(each, mostChars))) {
    if (chars + text.length > mostChars) {
      frames.push([])
      chars = 0
    }
    frames.at(-1)!.push(text)
    chars += text.length
  }
  return frames
}

/** A batch as several ones: what a talkative program says at once is up to 256 Ki characters. */
function cut(text: string, mostChars: number): string[] {
  if (text.length <= mostChars) return [text]
  const batch = JSON.parse(text) as EntryBatch
  if (batch.entries.length === 1) return [text]
  const pieces: EntryBatch[] = []
  let chars = Infinity
  for (const [n, entry] of batch.entries.entries()) {
    if (chars >= mostChars) {
      pieces.push({ ...batch, first: batch.first + n, entries: [] })
      chars = 0
    }
    pieces.at(-1)!.entries.push(entry)
    chars += JSON.stringify(entry).length
  }
  return pieces.map((piece) => JSON.stringify(piece))
}
