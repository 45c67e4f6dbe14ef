import { once } from 'node:events'
import net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

const TURN_MS = 100

export interface SlowProxy {
  url: string
  close(): Promise<void>
}

/** Brings so many bytes upward in a second, and never more, also where it was late itself; downward it is fast. */
export async function slowProxy(target: string, bytesPerS: number): Promise<SlowProxy> {
  const port = Number(new URL(target).port)
  const open = new Set<Socket>()
  const server = net.createServer((client) => {
    const upstream = net.connect(port, '127.0.0.1')
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one)
      one.setNoDelay(true)
      one.on('error', () => other.destroy())
      one.on('close', () => (open.delete(one), other.destroy()))
    }
    upstream.pipe(client)
    // Without a listener for its bytes it is read by hand.
    client.pause()
    const most = Math.floor((bytesPerS * TURN_MS) / 1000)
    const turn = setInterval(() => {
      const bytes = client.read(Math.min(most, client.readableLength)) as Buffer | null
      if (bytes) upstream.write(bytes)
      else client.read(0)
    }, TURN_MS)
    client.on('close', () => clearInterval(turn))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
