import { createServer } from 'node:net'

/** Says so before anything is made or started. The coordinator would find out too, but only after the database is up. */
export function refuseTakenPort(host: string, port: number): Promise<void> {
  if (port === 0) return Promise.resolve()
  const probe = createServer()
  return new Promise((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) => reject(explained(error, host, port)))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })
}

function explained(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const where = `${host}:${port}`
  if (error.code === 'EADDRINUSE') {
    return new Error(`${where} is taken, perhaps by another Windlass: stop it, or set WINDLASS_PORT to another port (0 takes a free one).`)
  }
  if (error.code === 'EACCES') return new Error(`This user may not listen on ${where}: set WINDLASS_PORT to a port above 1023.`)
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
    return new Error(`WINDLASS_HOST is ${host}, which is no address of this machine: set it to one, such as 127.0.0.1 or 0.0.0.0.`)
  }
  return new Error(`Cannot listen on ${where}: ${error.message}`, { cause: error })
}
