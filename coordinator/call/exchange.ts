import type { Readable } from 'node:stream'

// The little that this room uses of a request and a response. Only server.ts knows whose classes fill these shapes.

export interface HttpRequest {
  readonly method: string
  readonly path: string
  /** What stands behind the `?`, undecoded. */
  readonly path_query: string
  /** By the names of the plan's `pathKeys`, undecoded. */
  readonly path_parameters: Record<string, string>
  /** By lower-case name; the values of a repeated header are joined by commas. */
  readonly headers: Record<string, string>
  /** Address of the other end of the connection. */
  readonly ip: string
  /** False while a body is still coming. */
  readonly received: boolean
  buffer(): Promise<Buffer>
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown
  on(event: 'end' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

export interface HttpResponse {
  /** Sent, or given up because the client has gone. */
  readonly completed: boolean
  readonly initiated: boolean
  status(code: number): HttpResponse
  header(name: string, value: string): HttpResponse
  /** What was given to `header`. */
  getHeader(name: string): unknown
  send(body?: string, closeConnection?: boolean): unknown
  close(): unknown
  once(event: 'abort' | 'close', listener: () => void): unknown
  /** Runs the writes of `act` as one packet. */
  atomic(act: () => void): unknown
  begin_write(): unknown
  drain(act: (offset: number) => boolean): unknown
  /** Without a `total` it goes out in chunks. */
  stream(readable: Readable, total?: number): Promise<unknown>
  upgrade(context: object): unknown
  readonly raw: RawResponse
}

export interface RawResponse {
  writeStatus(status: string): unknown
  writeHeader(name: string, value: string): unknown
  /** False when the kernel takes no more for now; what was passed is buffered all the same. */
  write(chunk: string): boolean
  pause(): unknown
  resume(): unknown
  /**
   * Of the build of µWS that we bring: told of the bytes of an answer that its reader does not take at once, and how to
   * cut him.
   */
  onRest?: (bytes: number, cut: () => void) => Untaken
}

/** What lies here of an answer. */
export interface Untaken {
  /** Some of it was taken: its reader is not the one any more who has taken nothing for longest. */
  took(): void
  /** None of it is left. */
  release(): void
}

export interface HttpSocket {
  /** Bytes that were passed and have not left. */
  readonly buffered: number
  /** 1: sent, 0: buffered, 2: dropped. */
  send(text: string): number
  /** 125 bytes at most. */
  ping(text: string): number
  close(code: number, reason: string): void
  destroy(): void
  on(event: 'message', listener: (message: string, isBinary: boolean) => void): unknown
  /** The other side has read a ping, of ours or of the library, and all that was sent before it. */
  on(event: 'pong', listener: (text: string) => void): unknown
  /** Some of what was buffered has left. */
  on(event: 'drain', listener: () => void): unknown
  on(event: 'close', listener: (code: number, reason: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}
