import net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export interface CuttingProxy {
  url: string
  cuts(): number
  /** From now on connections last. */
  heal(): void
  close(): Promise<void>
}

/** Lets each connection carry a number of bytes from a seed, then cuts it wherever that is. */
export async function cuttingProxy(target: string, seed: number, most: number): Promise<CuttingProxy> {
  const random = mulberry(seed)
  const port = Number(new URL(target).port)
  const open = new Set<Socket>()
  let cuts = 0
  let isHealed = false
  const server = net.createServer((client) => {
    const upstream = net.connect(port, '127.0.0.1')
    let left = isHealed ? Infinity : Math.floor(random() * most)
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    const pass = (from: Socket, to: Socket) => {
      open.add(from)
      from.setNoDelay(true)
      from.on('close', () => (open.delete(from), end()))
      // A connection that is cut reports it on both sides; the close that follows is what counts.
      from.on('error', end)
      from.on('data', (chunk: Buffer) => {
        to.write(chunk.subarray(0, left), () => left <= 0 && end())
        if (chunk.length > left && left >= 0) cuts += 1
        left -= chunk.length
      })
    }
    pass(client, upstream)
    pass(upstream, client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: () => cuts,
    heal: () => (isHealed = true),
    async close() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Small, fast and the same everywhere. */
function mulberry(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
