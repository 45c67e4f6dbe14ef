import net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

/** A way to the coordinator that can be cut: nothing passes any more, and nobody is told. */
export interface Partition {
  url: string
  cut(): void
  /** What was on its way arrives now, late. */
  heal(): void
  close(): Promise<void>
}

export async function partition(target: string): Promise<Partition> {
  const port = Number(new URL(target).port)
  const open = new Set<Socket>()
  let isCut = false
  const server = net.createServer((client) => {
    const upstream = net.connect(port, '127.0.0.1')
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.setNoDelay(true)
      from.on('close', () => {
        open.delete(from)
        // Of an end on the other side of the cut nobody hears.
        if (!isCut) end()
      })
      // The close that follows is what counts.
      from.on('error', () => from.destroy())
      from.on('data', (chunk: Buffer) => to.writable && to.write(chunk))
      if (isCut) from.pause()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true
      for (const socket of open) socket.pause()
    },
    heal() {
      isCut = false
      for (const socket of open) socket.resume()
    },
    async close() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
