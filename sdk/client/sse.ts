export interface SseFrame {
  /** The `event:` field; `message` when there was none. */
  event: string
  /** The last `id:` seen on the stream, as the standard asks for. */
  id: string
  data: string
}

// Data of an event is 64 KiB and an output 1 MiB at most; what grows beyond this is not one of our streams.
const MAX_FRAME_CHARS = 16 * 1024 * 1024

/** Server-Sent Events out of text that arrives in arbitrary pieces. Comments are swallowed. */
export class SseParser {
  private rest = ''
  private event = ''
  private id = ''
  private data: string[] = []
  private started = false
  private chars = 0

  /** The frames that are complete with this piece. */
  push(piece: string): SseFrame[] {
    const text = this.rest + (this.started ? piece : piece.replace(/^\uFEFF/, ''))
    this.started ||= piece !== ''
    const frames: SseFrame[] = []
    let from = 0
    for (const { index, 0: end } of text.matchAll(/\r\n|\n|\r/g)) {
      // A CR that ends the piece may be the first half of a CRLF: it waits for the next one.
      if (end === '\r' && index === text.length - 1) break
      const frame = this.line(text.slice(from, index))
      if (frame) frames.push(frame)
      from = index + end.length
    }
    this.rest = text.slice(from)
    if (this.rest.length + this.chars > MAX_FRAME_CHARS)
      throw new Error('the event stream sent one event of more than 16 MiB')
    return frames
  }

  private line(line: string): SseFrame | undefined {
    if (line === '') return this.dispatch()
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') this.event = value
    if (field === 'id' && !value.includes('\0')) this.id = value
    if (field === 'data') {
      this.data.push(value)
      this.chars += value.length
    }
    return undefined
  }

  private dispatch(): SseFrame | undefined {
    const frame = { event: this.event === '' ? 'message' : this.event, id: this.id, data: this.data.join('\n') }
    const isEmpty = this.data.length === 0
    this.event = ''
    this.data = []
    this.chars = 0
    return isEmpty ? undefined : frame
  }
}
