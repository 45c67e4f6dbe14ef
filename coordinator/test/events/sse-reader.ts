import { within } from '@windlass/shared/time.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'

/** A frame as its lines say; `id` only where the frame itself has one. */
export interface SseFrame {
  event: string
  data: string
  id: string | undefined
}

export interface SseReader {
  /** Waits until so many frames are there. */
  has(count: number, ms?: number): Promise<SseFrame[]>
  /** All frames, when the server has closed the stream. */
  ended(): Promise<SseFrame[]>
  text(): string
  /** Closes the stream from this side. Answers what came. */
  leave(): SseFrame[]
}

const PATIENCE_MS = 60_000

export async function aReader(
  c: Pick<TestCoordinator, 'url' | 'apiKey'>,
  path: string,
  lastEventId?: string,
): Promise<SseReader> {
  const leaving = new AbortController()
  const headers = {
    authorization: `Bearer ${c.apiKey}`,
    ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
  }
  const response = await within(PATIENCE_MS, fetch(c.url + path, { headers, signal: leaving.signal }), 'no headers')
  if (!response.ok) throw new Error(`the stream is refused: ${response.status} ${await response.text()}`)
  const frames: SseFrame[] = []
  let text = ''
  let rest = ''
  let woken = Promise.withResolvers<void>()
  const wake = () => {
    woken.resolve()
    woken = Promise.withResolvers<void>()
  }

  async function read(): Promise<SseFrame[]> {
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      const piece = decoder.decode(chunk as Uint8Array, { stream: true })
      text += piece
      const blocks = (rest + piece).split('\n\n')
      rest = blocks.pop()!
      frames.push(...blocks.filter((block) => !block.startsWith(':')).map(frameOf))
      wake()
    }
    return frames
  }
  const ended = read()
  // A reader that leaves ends with an error of its own making.
  ended.catch(() => {})

  return {
    async has(count, ms = PATIENCE_MS) {
      const end = performance.now() + ms
      while (frames.length < count) {
        await within(Math.max(1, end - performance.now()), woken.promise, `${frames.length} frames of ${count}`)
      }
      return frames
    },
    ended: () => within(PATIENCE_MS, ended, 'the stream does not end'),
    text: () => text,
    leave() {
      leaving.abort()
      return frames
    },
  }
}

function frameOf(block: string): SseFrame {
  const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]))
  return { event: fields.get('event') ?? 'message', data: fields.get('data') ?? '', id: fields.get('id') }
}
