import { createServer, type AddressInfo } from 'node:net'

/**
 * Makes sure that nobody listens on the port, or finds a free one for 0. uWebSockets.js needs both done for it: it shares a
 * port with whoever else asks so (two coordinators would each get half of the requests, without a word), and a port that it
 * was left to choose cannot be taken again for a minute after a `kill -9`.
 */
export function freePort(host: string, port: number): Promise<number> {
  const probe = createServer()
  return new Promise((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) => reject(explained(error, host, port)))
    probe.listen({ host, port, exclusive: true }, () => {
      const found = (probe.address() as AddressInfo).port
      probe.close(() => resolve(found))
    })
  })
}

function explained(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const where = `${host}:${port}`
  const advice: Record<string, string> = {
    EADDRINUSE:
      'Something listens there, perhaps another Windlass. Stop it, or set WINDLASS_PORT to another port (0 takes a free one).',
    EACCES: 'This user may not. Set WINDLASS_PORT to a port above 1023.',
    EADDRNOTAVAIL:
      'This machine has no such address. Set WINDLASS_HOST to one that it has, such as 127.0.0.1 or 0.0.0.0.',
    ENOTFOUND: 'There is no such name. Set WINDLASS_HOST to an address of this machine, such as 127.0.0.1 or 0.0.0.0.',
  }
  return new Error(`Cannot listen on ${where}. ${advice[error.code ?? ''] ?? error.message}`, { cause: error })
}
