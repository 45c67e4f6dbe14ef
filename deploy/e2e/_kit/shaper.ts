import net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

/** A way to a coordinator that delays what passes, is slow, and cuts its connections in the middle of an answer. */
export interface Shaper {
  url: string
  /** Both directions, from now on. */
  delay(ms: number): void
  /** Bytes a second to all clients together, from now on. */
  pace(bytesPerSecond: number): void
  /** The same from all clients together. */
  paceUp(bytesPerSecond: number): void
  /** Each connection ends after so many more bytes to the client, which the function is asked for; undefined: none does. */
  cut(after: (() => number) | undefined): void
  /** How many were cut. */
  cuts(): number
  close(): Promise<void>
}

interface Pair {
  client: Socket
  upstream: Socket
  /** Bytes that the client still gets. */
  left: number
}

export async function shaper(target: string, host = '127.0.0.1'): Promise<Shaper> {
  const { hostname, port } = new URL(target)
  const open = new Set<Pair>()
  let [delayMs, cuts] = [0, 0]
  const paces = { down: { bytesPerMs: Infinity, freeAt: 0 }, up: { bytesPerMs: Infinity, freeAt: 0 } }
  let after: (() => number) | undefined

  const end = (pair: Pair) => {
    open.delete(pair)
    pair.client.destroy()
    pair.upstream.destroy()
  }
  /** In order, whatever the delay was when each came. */
  const later = (act: () => void) => (delayMs > 0 ? void setTimeout(act, delayMs) : act())
  const down = (pair: Pair, chunk: Buffer) => {
    const part = chunk.subarray(0, pair.left)
    pair.left -= part.length
    if (pair.client.writable) pair.client.write(part)
    if (part.length === chunk.length || !open.has(pair)) return
    cuts++
    // What was written is on its way before the end of the connection is.
    pair.client.end()
    pair.upstream.destroy()
  }
  /** One after the other: what stands behind a large message waits for it. */
  const paced = (pace: typeof paces.up, from: Socket, { length }: Buffer, act: () => void) => {
    if (pace.bytesPerMs === Infinity) return act()
    pace.freeAt = Math.max(pace.freeAt, performance.now()) + length / pace.bytesPerMs
    from.pause()
    setTimeout(() => {
      act()
      from.resume()
    }, pace.freeAt - performance.now())
  }
  const up = ({ upstream }: Pair, chunk: Buffer) => upstream.writable && upstream.write(chunk)
  const server = net.createServer((client) => {
    const upstream = net.connect(Number(port), hostname)
    const pair = { client, upstream, left: after?.() ?? Infinity }
    open.add(pair)
    upstream.on('data', (chunk: Buffer) => later(() => paced(paces.down, upstream, chunk, () => down(pair, chunk))))
    client.on('data', (chunk: Buffer) => later(() => paced(paces.up, client, chunk, () => up(pair, chunk))))
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      // The close that follows is what counts.
      socket.on('error', () => socket.destroy())
      socket.on('close', () => later(() => end(pair)))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    delay: (ms) => void (delayMs = ms),
    pace: (bytesPerSecond) => void (paces.down.bytesPerMs = bytesPerSecond / 1000),
    paceUp: (bytesPerSecond) => void (paces.up.bytesPerMs = bytesPerSecond / 1000),
    cut(next) {
      after = next
      for (const pair of open) pair.left = after?.() ?? Infinity
    },
    cuts: () => cuts,
    async close() {
      for (const pair of open) end(pair)
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
