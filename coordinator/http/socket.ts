import type { Log } from '@windlass/shared/log.ts'
import type { AgentSocket, ClosedBy, SocketAnswer } from '../api/call.ts'
import type { HttpSocket } from '../call/exchange.ts'
import type { Outlet } from './answer.ts'
import type { Open, OpenWork } from './open-work.ts'

/** Rides from the upgrade to the open socket. */
export interface Upgrade {
  answer: SocketAnswer
  requestId: string
}

/** 1001: the end is going away, as RFC 6455 has it for a server that stops. */
const GOING_AWAY = 1001
const UNSUPPORTED_DATA = 1003
const INTERNAL_ERROR = 1011
/** The library's word for a frame that found no room. */
const DROPPED = 2
/** For what was sent at once: 1.3 MiB over a line of 20 KB/s take a minute. */
const READ_MS = 120_000

export function upgrade(outlet: Outlet, answer: SocketAnswer): void {
  const { response, requestId } = outlet
  const context: Upgrade = { answer, requestId }
  // For the build of µWS that we bring: an upgrade is corked in another way than an answer.
  Object.assign(response.raw, { becomesSocket: true })
  response.atomic(() => {
    outlet.sent = { status: 101, bytes: 0 }
    response.raw.writeStatus('101 Switching Protocols')
    response.raw.writeHeader('x-request-id', requestId)
    response.upgrade(context)
  })
}

export function openSocket(socket: HttpSocket, { answer, requestId }: Upgrade, open: OpenWork, log: Log): void {
  const wrapped = new ServerSocket(socket, open)
  socket.on('error', (error) => {
    log.error('http.socket.failed', { requestId, error })
    wrapped.close(INTERNAL_ERROR, 'internal error')
  })
  answer.accept(wrapped)
}

class ServerSocket implements AgentSocket, Open {
  readonly #socket: HttpSocket
  readonly #onMessage: ((text: string) => void)[] = []
  readonly #onUnread: ((bytes: number) => void)[] = []
  readonly #onClose: ((by: ClosedBy) => void)[] = []
  /** Callers that wait for the answer to a ping, by its text. */
  readonly #awaited = new Map<string, () => void>()
  #unread = 0
  #pings = 0
  #closedBy: ClosedBy | undefined
  #isOurEnd = false

  constructor(socket: HttpSocket, open: OpenWork) {
    this.#socket = socket
    open.add(this)
    socket.on('message', (message, isBinary) => {
      if (isBinary) this.close(UNSUPPORTED_DATA, 'frames are text')
      else for (const listener of this.#onMessage) listener(message)
    })
    socket.on('drain', () => this.#countUnread())
    socket.on('pong', (text) => this.#heard(text))
    socket.on('close', (_code, reason) => {
      this.#closedBy = this.#isOurEnd ? 'coordinator' : endOf(reason)
      open.delete(this)
      this.#countUnread()
      for (const listener of this.#onClose) listener(this.#closedBy)
      for (const text of this.#awaited.keys()) this.#heard(text)
    })
  }

  send(text: string): void {
    if (this.#closedBy) return
    // A dropped frame would be a hole that the other end cannot see. It comes back and resumes.
    const sent = this.#socket.send(text)
    if (sent === DROPPED) this.cut()
    else if (sent === 0 || this.#unread > 0) this.#countUnread()
  }

  close(code: number, reason: string): void {
    if (this.#closedBy) return
    this.#isOurEnd = true
    this.#socket.close(code, reason)
  }

  cut(): void {
    this.#isOurEnd = true
    this.#socket.destroy()
  }

  onMessage(listener: (text: string) => void): void {
    this.#onMessage.push(listener)
  }

  onUnread(listener: (bytes: number) => void): void {
    this.#onUnread.push(listener)
  }

  /** Frames stand in line, in buffers of the system too, and so does a ping. An agent that answers none is cut. */
  whenRead(): Promise<void> {
    if (this.#closedBy) return Promise.resolve()
    const text = String((this.#pings += 1))
    return new Promise((resolve) => {
      const late = setTimeout(() => this.cut(), READ_MS).unref()
      this.#awaited.set(text, () => {
        clearTimeout(late)
        resolve()
      })
      if (this.#socket.ping(text) === DROPPED) this.cut()
    })
  }

  #heard(text: string): void {
    this.#awaited.get(text)?.()
    this.#awaited.delete(text)
  }

  /** Called at once when the socket is closed already. */
  onClose(listener: (by: ClosedBy) => void): void {
    if (this.#closedBy) listener(this.#closedBy)
    else this.#onClose.push(listener)
  }

  #countUnread(): void {
    const bytes = this.#closedBy ? 0 : this.#socket.buffered
    if (bytes === this.#unread) return
    this.#unread = bytes
    for (const listener of this.#onUnread) listener(bytes)
  }

  end(): void {
    this.close(GOING_AWAY, 'the coordinator stops')
  }
}

/** The library's words for a socket from which nothing has come within the idle timeout. */
function endOf(reason: string): ClosedBy {
  return reason.includes('timed out') ? 'silence' : 'agent'
}
