import net, { type AddressInfo, type Socket } from 'node:net'

/** A way to PostgreSQL that can be closed, so that connections fail, or frozen, so that nothing is heard of them. */
export interface Gate {
  url: string
  shut(): Promise<void>
  freeze(): void
  open(): Promise<void>
  close(): Promise<void>
}

export async function aGate(url: string): Promise<Gate> {
  const target = new URL(url)
  const folder = target.searchParams.get('host')
  const path = folder === null ? undefined : `${folder}/.s.PGSQL.${target.port || '5432'}`
  const sockets = new Set<Socket>()
  let isFrozen = false
  const server = net.createServer((client) => {
    const upstream = path === undefined ? net.connect(Number(target.port), target.hostname) : net.connect(path)
    pass(client, upstream)
    pass(upstream, client)
  })

  function pass(from: Socket, to: Socket): void {
    sockets.add(from)
    from.on('data', (chunk: Buffer) => to.writable && to.write(chunk))
    // The close that follows is what counts.
    from.on('error', () => from.destroy())
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    if (isFrozen) from.pause()
  }

  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const shut = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  await listen(0)
  const { port } = server.address() as AddressInfo
  target.searchParams.delete('host')
  target.hostname = '127.0.0.1'
  target.port = String(port)
  return {
    url: target.href,
    shut,
    freeze() {
      isFrozen = true
      for (const socket of sockets) socket.pause()
    },
    async open() {
      isFrozen = false
      for (const socket of sockets) socket.resume()
      if (!server.listening) await listen(port)
    },
    close: shut,
  }
}
