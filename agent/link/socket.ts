import { WebSocket } from 'ws'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { rows as runnerSurface } from '@windlass/shared/ops/runner-surface/ops.ts'
import { requestOf } from '@windlass/shared/ops/call.ts'
import { type Refusal, refusalIn } from '@windlass/shared/ops/whose-answer.ts'
import { proxyAgent } from '../outbound.ts'
import { type CoordinatorFrame, OTHER_KEY_REASON, REVOKED_REASON } from '@windlass/shared/wire/agent.ts'
import type { Lane } from '@windlass/shared/wire/parts.ts'
import { LaneOfFrames } from './lanes.ts'
import { UpwardPace } from './pace.ts'

export type Refused = Extract<CoordinatorFrame, { t: 'refused' }>

/** For an agent that is known by another key. */
export const OTHER_KEY_ADVICE =
  'its key was renewed since, and this state folder is of before that, as in a snapshot or backup; or a copy of it ' +
  'goes on elsewhere. Where none does, register the machine anew in an empty state folder: ' +
  'windlass pools token <pool> makes a token'

interface Unauthenticated {
  why: 'unauthenticated'
  detail: string
  /** What the coordinator's clock showed. */
  date: string | undefined
  /** The runner is known by another key. Older coordinators do not say so. */
  isOtherKey: boolean
  wasOpen: boolean
}

/** Why a connection is over. */
export type SocketEnd =
  | { why: 'closed'; detail: string; wasOpen: boolean }
  | Unauthenticated
  | { why: 'refused'; frame: Refused; wasOpen: boolean }

export interface Socket {
  /**
   * Resolves when the frame has left for the kernel; undefined while little is waiting. Rejects never: a lost frame
   * shows by the end. Frames of a lane keep their order.
   */
  send(text: string, lane: Lane): Promise<void> | undefined
  /** Characters that a frame of entries should have at most: of one that is cut off all is sent again. */
  readonly frameChars: number
  close(reason: string): void
  /** Resolves once, with the reason. */
  ended: Promise<SocketEnd>
}

export interface SocketOptions {
  url: string
  token: string
  /** How long the coordinator may take for the handshake. */
  connectMs: number
  onOpen(socket: Socket): void
  onFrame(frame: CoordinatorFrame, socket: Socket): void
}

/** How long most tries to connect may take, and a refusal to come. */
export const CONNECT_MS = 10_000
/**
 * A coordinator that stands still is noticed 25 s after it was heard of, so that half of a fence is left for another
 * one. Over a slow line its answer to a ping comes later than over a fast one, by what the pace lets be under way.
 */
const PING_MS = 5_000
const DEAD_MS = 20_000
/** Longer than any refusal of ours. */
const ANSWER_CHARS = 16_384
const FRAME_BYTES = 64 * 1024 * 1024

/** One connection, from dialling to its end. */
export function openSocket(options: SocketOptions): Socket {
  const { url, headers } = requestOf({ url: options.url }, runnerSurface.socket, {})
  const ws = new WebSocket(url.replace(/^http/, 'ws'), {
    headers: { ...headers, authorization: `Bearer ${options.token}` },
    handshakeTimeout: options.connectMs,
    agent: proxyAgent(url),
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES,
  })
  const course: Course = {
    refused: undefined,
    isUnauthenticated: false,
    date: undefined,
    isOtherKey: false,
    trouble: '',
    wasOpen: false,
  }
  const pace = new UpwardPace({ ping: (text) => ws.ping(text), now: () => performance.now() })
  const stopWatching = watchLiveness(ws, pace)
  const lanes = { entries: new LaneOfFrames('entries', ws, pace), others: new LaneOfFrames('others', ws, pace) }
  const socket: Socket = {
    send: (text, lane) => lanes[lane].send(text),
    get frameChars() {
      return pace.limitBytes
    },
    close: (reason) => close(ws, reason),
    ended: untilEnded(ws, course).finally(stopWatching),
  }
  const takeRefusal = async (request: ClientRequest, response: IncomingMessage) => {
    const status = response.statusCode ?? 0
    course.date = response.headers.date
    const said = await refusalOf(response)
    course.trouble = `${said ? 'the coordinator' : 'something that is not Windlass'} answered ${status}`
    course.isUnauthenticated = said !== undefined && (status === 401 || status === 403)
    if (said && status === 401) {
      const reason = said.detail?.['reason']
      course.isOtherKey = reason === OTHER_KEY_REASON
      if (reason === REVOKED_REASON) course.refused = { t: 'refused', code: 'REVOKED', message: said.message }
    }
    if (course.refused) options.onFrame(course.refused, socket)
    request.destroy()
    // With a listener of ours in its place, `ws` leaves the ending to us.
    ws.terminate()
  }
  ws.on('unexpected-response', (request, response) => void takeRefusal(request, response))
  ws.on('open', () => {
    course.wasOpen = true
    // Before anything is under way its answer says how long the way is.
    pace.ping()
    options.onOpen(socket)
  })
  ws.on('message', (data: Buffer) => {
    const frame = parseFrame(data)
    if (!frame) return ws.close(1007, 'not a frame')
    if (frame.t === 'refused') course.refused = frame
    if (frame.t === 'welcome') lanes.entries.leastPartChars = frame.leastPartChars ?? lanes.entries.leastPartChars
    options.onFrame(frame, socket)
  })
  return socket
}

/** What is known about a connection so far, for the verdict at its end. */
interface Course {
  refused: Refused | undefined
  /** By the word of the coordinator: a proxy that lets nobody through knows nothing of this agent. */
  isUnauthenticated: boolean
  date: string | undefined
  isOtherKey: boolean
  trouble: string
  wasOpen: boolean
}

function untilEnded(ws: WebSocket, course: Course): Promise<SocketEnd> {
  ws.on('error', (error) => (course.trouble ||= error.message))
  return new Promise((resolve) => {
    ws.on('close', (code, reason) => {
      const detail = course.trouble || `${code} ${reason.toString()}`.trim()
      const { refused, isUnauthenticated, date, isOtherKey, wasOpen } = course
      if (refused) resolve({ why: 'refused', frame: refused, wasOpen })
      else if (isUnauthenticated) resolve({ why: 'unauthenticated', detail, date, isOtherKey, wasOpen })
      else resolve({ why: 'closed', detail, wasOpen })
    })
  })
}

/**
 * Why it is refused: an agent that was out of reach when its runner was revoked hears of that nowhere else. Nothing
 * where something between us and the coordinator has answered, or broke off.
 */
async function refusalOf(response: IncomingMessage): Promise<Refusal | undefined> {
  const timer = setTimeout(() => response.destroy(), CONNECT_MS)
  try {
    let text = ''
    for await (const chunk of response as AsyncIterable<Buffer>) {
      text += chunk.toString()
      if (text.length > ANSWER_CHARS) return undefined
    }
    return refusalIn(text)
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** A close frame that is never answered must not keep the connection for ever. */
function close(ws: WebSocket, reason: string): void {
  if (ws.readyState === WebSocket.CONNECTING) return ws.terminate()
  ws.close(1000, reason)
  const timer = setTimeout(() => ws.terminate(), 1000)
  ws.once('close', () => clearTimeout(timer))
}

/** TCP may take a quarter of an hour to notice that the other side is gone. */
function watchLiveness(ws: WebSocket, pace: UpwardPace): () => void {
  let heardAt = performance.now()
  const heard = () => (heardAt = performance.now())
  for (const event of ['open', 'message', 'ping', 'pong']) ws.on(event, heard)
  // A large message comes in pieces, over a slow line for a minute.
  // Once `ws` listens itself: what came with the answer to the upgrade would go to us alone.
  ws.on('upgrade', ({ socket }: IncomingMessage) => ws.once('open', () => socket.on('data', heard)))
  const timer = setInterval(() => {
    if (performance.now() - heardAt > DEAD_MS) return ws.terminate()
    if (ws.readyState === WebSocket.OPEN) pace.ping()
  }, PING_MS)
  ws.on('pong', (text) => pace.answered(text.toString()))
  return () => {
    clearInterval(timer)
    pace.end()
  }
}

function parseFrame(data: Buffer): CoordinatorFrame | undefined {
  try {
    return JSON.parse(data.toString()) as CoordinatorFrame
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
