import net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { randomOf } from '@windlass/shared/test/_kit/seed.ts'

export interface CuttingProxy {
  url: string
  cuts(): number
  /** From now on connections last. */
  heal(): void
  close(): Promise<void>
}

/** Lets each connection carry a number of bytes from a seed, then cuts it wherever that is. */
export async function cuttingProxy(target: string, seed: number, most: number): Promise<CuttingProxy> {
  const random = randomOf(seed)
  const port = Number(new URL(target).port)
  const open = new Set<Socket>()
  let cuts = 0
  let isHealed = false
  const cut = () => {
    cuts += 1
    announce()
  }
  const server = net.createServer((client) => {
    const upstream = net.connect(port, '127.0.0.1')
    let left = isHealed ? Infinity : Math.floor(random.next() * most)
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
        if (chunk.length > left && left >= 0) cut()
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
