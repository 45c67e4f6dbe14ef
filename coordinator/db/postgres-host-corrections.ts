import type { Correction } from './postgres-corrections.ts'

/** So that connections of postgres.js share the look-ups of their host: see addresses.ts. */
export const HOST_CORRECTIONS: readonly Correction[] = [
  {
    file: 'index.js',
    why: 'connections that wait for the same host look it up once',
    find: `    socket          : o.socket,`,
    put: `    socket          : o.socket,
    lookupFor       : o.lookupFor,`,
  },
  {
    file: 'connection.js',
    why: 'the same',
    find: `    socket.connect(port[hostIndex], host[hostIndex])`,
    put: `    socket.connect({ port: port[hostIndex], host: host[hostIndex], lookup: options.lookupFor(socket) })`,
  },
]
