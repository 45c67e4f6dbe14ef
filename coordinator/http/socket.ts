import type { Log } from '@windlass/shared/log.ts'
import type { AgentSocket, ClosedBy, SocketAnswer } from '../api/call.ts'
import type { HttpSocket } from './exchange.ts'
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
  readonly #onClose: ((by: ClosedBy) => void)[] = []
  #closedBy: ClosedBy | undefined
  #isOurEnd = false

  constructor(socket: HttpSocket, open: OpenWork) {
    this.#socket = socket
    open.add(this)
    socket.on('message', (message, isBinary) => {
      if (isBinary) this.close(UNSUPPORTED_DATA, 'frames are text')
      else for (const listener of this.#onMessage) listener(message)
    })
    socket.on('close', (_code, reason) => {
      this.#closedBy = this.#isOurEnd ? 'coordinator' : endOf(reason)
      open.delete(this)
      for (const listener of this.#onClose) listener(this.#closedBy)
    })
  }

  send(text: string): void {
    if (this.#closedBy) return
    // A dropped frame would be a hole that the other end cannot see. It comes back and resumes.
    if (this.#socket.send(text) === 2) this.cut()
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

  /** Called at once when the socket is closed already. */
  onClose(listener: (by: ClosedBy) => void): void {
    if (this.#closedBy) listener(this.#closedBy)
    else this.#onClose.push(listener)
  }

  end(): void {
    this.close(GOING_AWAY, 'the coordinator stops')
  }
}

/** The library's words for a socket from which nothing has come within the idle timeout. */
function endOf(reason: string): ClosedBy {
  return reason.includes('timed out') ? 'silence' : 'agent'
}
