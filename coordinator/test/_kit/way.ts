import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Where the server of this address listens, for `connect`. */
export function targetOf(url: string): { path: string } | { host: string; port: number } {
  const to = new URL(url)
  const folder = to.searchParams.get('host')
  const port = to.port || '5432'
  return folder ? { path: `${folder}/.s.PGSQL.${port}` } : { host: to.hostname, port: Number(port) }
}

/** A way to the database over TCP that can fall silent. */
export async function aWay(url: string) {
  const to = new URL(url)
  const target = targetOf(url)
  const open = new Set<[Socket, Socket]>()
  let isSilent = false
  let last = ''
  const join = ([near, far]: [Socket, Socket]) => {
    near.pipe(far).pipe(near)
    if (last === '') return
    far.on('data', (data) => {
      if (last === '' || !data.includes(last)) return
      last = ''
      near.end()
    })
  }
  const server = createServer((near) => {
    const pair: [Socket, Socket] = [near, connect(target)]
    open.add(pair)
    for (const socket of pair) socket.on('error', () => socket.destroy())
    if (!isSilent) join(pair)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  to.searchParams.delete('host')
  to.hostname = '127.0.0.1'
  to.port = String((server.address() as AddressInfo).port)
  const vanish = () => {
    for (const [near, far] of open) {
      near.unpipe(far)
      far.unpipe(near)
    }
  }
  return {
    url: to.href,
    /** What is open now says nothing any more, and takes nothing. */
    vanish,
    /** The same for what is opened from now on, until it comes back: a network that is cut. */
    fallSilent() {
      isSilent = true
      vanish()
    },
    /** What is opened from now on says nothing; what is open goes on: a pooler whose sessions are taken. */
    holdNew() {
      isSilent = true
    },
    /** What was sent meanwhile arrives. */
    comeBack() {
      if (isSilent) open.forEach(join)
      isSilent = false
    },
    /** Of what is opened from now on the first connection over which the server says this ends with it. */
    endAfter(said: string) {
      last = said
    },
    /** What is open now takes no answer any more. */
    standStill() {
      for (const [near, far] of open) far.unpipe(near).pause()
    },
    close() {
      server.close()
      for (const pair of open) for (const socket of pair) socket.destroy()
    },
  }
}
