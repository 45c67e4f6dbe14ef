import { createServer, type Server, type Socket } from 'node:net'
import { STATUS_CODES } from 'node:http'

export interface Asked {
  method: string
  /** Without its query. */
  path: string
}

export interface Answer {
  status: number
  type: string
  body: string
  allow?: string
}

/** The oldest connection goes when there is another. Who probes asks at once, and is answered by then. */
const MOST_CONNECTIONS = 64
/** What Prometheus and the kubelet send has some hundred. */
const MOST_HEAD_BYTES = 8192
/** From the connection until the answer is sent. */
const WITHIN_MS = 5_000

type Answering = (asked: Asked) => Answer | Promise<Answer>

interface Options {
  /** Told of what `answer` throws; who asked is answered with 500. */
  onFailure: (error: unknown, asked: Asked) => void
  withinMs?: number
}

export interface OneRequestServer {
  server: Server
  close: () => Promise<void>
}

/**
 * Answers one request a connection, then closes it. Programs of runs reach this server, and the one of `node:http`
 * works off all that a client sends without waiting for answers, 1,900 requests a read, before anything else has its
 * turn. Here each connection is read until its first head is there, and Node accepts one connection a turn of its
 * loop: so a flood takes a fraction of a millisecond of each turn.
 */
export function createOneRequestServer(
  answer: Answering,
  { onFailure, withinMs = WITHIN_MS }: Options,
): OneRequestServer {
  // Nobody else catches it: it would end the agent with all its runs.
  const safely = async (asked: Asked) => {
    try {
      return await answer(asked)
    } catch (error) {
      onFailure(error, asked)
      return BROKEN
    }
  }
  const open = new Set<Socket>()
  // A client may close its half before it reads.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const [oldest] = open
    if (oldest && open.size >= MOST_CONNECTIONS) oldest.destroy()
    open.add(socket)
    const timer = setTimeout(() => socket.destroy(), withinMs).unref()
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      open.delete(socket)
    })
    readHead(socket, (head) => void respond(socket, head, safely))
  })
  return {
    server,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}

/** Reads no more than it takes: what follows the head is never looked at. */
function readHead(socket: Socket, onHead: (head: string) => void): void {
  let head = ''
  socket.on('data', (chunk: Buffer) => {
    const searched = Math.max(0, head.length - 3)
    head += chunk.toString('latin1', 0, MOST_HEAD_BYTES - head.length)
    const isWhole = head.includes('\r\n\r\n', searched)
    if (!isWhole && head.length < MOST_HEAD_BYTES) return
    socket.pause().removeAllListeners('data')
    onHead(isWhole ? head : '')
  })
  socket.on('end', () => socket.destroy())
}

const MALFORMED: Answer = { status: 400, type: 'text/plain', body: 'This is not a request, or it is too long.\n' }
const BROKEN: Answer = { status: 500, type: 'text/plain', body: 'This failed. The log of the agent says why.\n' }

async function respond(socket: Socket, head: string, answer: Answering): Promise<void> {
  const [, method = '', path = ''] = /^([A-Z]+) ([^\s?]+)(?:\?\S*)? HTTP\/1\.[01]\r\n/.exec(head) ?? []
  const { status, type, body, allow } = await (method ? answer({ method, path }) : MALFORMED)
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `content-type: ${type}`,
    `content-length: ${Buffer.byteLength(body)}`,
    ...(allow === undefined ? [] : [`allow: ${allow}`]),
    'connection: close',
  ]
  if (socket.destroyed) return
  socket.write(`${lines.join('\r\n')}\r\n\r\n${method === 'HEAD' ? '' : body}`)
  socket.destroySoon()
}
