import type { AgentFrame, CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import type { RunnerIdentity } from '../actor.ts'
import { failedForAll } from '../db/read-only.ts'
import { createSample } from '../limits/sample.ts'
import { POLICY, TRY_AGAIN } from './close-codes.ts'
import type { AgentSocket, ClosedBy } from './agent-socket.ts'
import { createLine } from './backlog.ts'
import type { ReadFrame } from './frame-queue.ts'
import { readFrame, saysEntries } from './frames.ts'
import { greet } from './hello.ts'
import { createLeaseTerms } from './lease-terms.ts'
import { createTalk, obey } from './obey.ts'
import type { Session, SessionNeeds } from './session.ts'

/** Batches that are handed on in one turn of the event loop; each of them takes some 10 µs. */
const BATCHES_AT_ONCE = 250

const AWAY = 'the coordinator cannot reach its database; connect again'

/** Longer frames than most agents have wait for those before them. */
const LONG_CHARS = 16 * 1024

/** By runner, over all of its connections. */
const lines = { disconnected: createSample(), failed: createSample() }

/**
 * One connection of an agent. Frames are taken as they come, and answered when what they ask is committed; a connection
 * that fails in any way is closed, and the agent says everything again on the next: nothing here is worth keeping.
 */
export function serveAgent(deps: SessionNeeds, runner: RunnerIdentity, socket: AgentSocket, baseUrl: string): void {
  const tell = (frame: CoordinatorFrame) => socket.send(JSON.stringify(frame))
  const session: Session = {
    deps,
    runner,
    socket,
    baseUrl,
    terms: createLeaseTerms(deps, runner),
    openedAt: performance.now(),
    instance: undefined,
    connection: 0,
    isOver: false,
    tell,
  }
  /** Whether the agent was let in; undefined before its hello. */
  let entered: Promise<boolean> | undefined
  const talk = createTalk(session, failed)
  const taken = (frame: AgentFrame) => unlessAway(session, frame, take)
  const later = readLater(session, taken)

  const close = (code: number, reason: string) => socket.close(code, reason)
  const queue = deps.sockets.frames.open(runner, { read, failed, close })

  socket.onClose((by) => {
    session.isOver = true
    queue.end()
    deps.sockets.leave(runner.id, socket)
    void noteEnd(by)
  })
  socket.onMessage((text) => queue.add(text))

  function read(text: string): ReadFrame | undefined {
    if (entered && text.length > LONG_CHARS && !saysEntries(text)) return { weight: 0, pieces: [() => later(text)] }
    const frame = readFrame(text)
    if (frame && (frame.t === 'hello') === (entered === undefined)) return inPieces(frame, taken)
    socket.close(POLICY, !frame ? 'not a frame' : entered ? 'hello comes once' : 'hello comes first')
    return undefined
  }

  function failed(error: unknown): void {
    const facts = lines.failed(runner.id)
    if (facts) deps.log.warn('agent.frame.failed', { runnerId: runner.id, error, ...facts })
    socket.close(TRY_AGAIN, 'the coordinator could not take it; connect again')
  }

  /** Also of one whose hello came to nothing once it was let in: the runner has this connection since. */
  async function noteEnd(by: ClosedBy): Promise<void> {
    try {
      const isWelcomed = await entered?.catch(() => false)
      if (session.connection === 0) return
      const facts = isWelcomed && lines.disconnected(runner.id)
      if (facts) deps.log('agent.disconnected', { runnerId: runner.id, by, ...facts })
      await deps.disconnections.add({ runnerId: runner.id, by, connection: session.connection })
    } catch (error) {
      deps.log.debug('agent.disconnected.unnoted', { runnerId: runner.id, error })
    }
  }

  async function take(frame: AgentFrame): Promise<void> {
    if (frame.t === 'hello') return hello(frame)
    if (!(await entered)) return
    // An agent that was refused may say what has become of its runs, and nothing else.
    if (deps.sockets.isRefused(socket) && frame.t !== 'entries') return
    return obey(talk, frame)
  }

  async function hello(frame: Extract<AgentFrame, { t: 'hello' }>): Promise<void> {
    entered = greet(session, frame)
    try {
      await entered
    } catch (error) {
      if (failedForAll(error)) deps.sockets.connects.giveBack(runner)
      throw error
    }
  }
}

/** An agent whose hello or heartbeat waits for a database that is away has no time to lose: it goes elsewhere. */
async function unlessAway(
  { deps, socket }: Session,
  frame: AgentFrame,
  take: (frame: AgentFrame) => Promise<void>,
): Promise<void> {
  if (frame.t !== 'hello' && frame.t !== 'heartbeat') return take(frame)
  const stop = deps.reach.onAway(() => socket.close(TRY_AGAIN, AWAY))
  try {
    await take(frame)
  } finally {
    stop()
  }
}

/**
 * Long frames that are no entries stay text until those before them are done: parsed, they take four times as much.
 * Heartbeats wait for none but their own kind.
 */
function readLater(session: Session, take: (frame: AgentFrame) => Promise<void>) {
  const [beats, others] = [createLine(() => session.isOver), createLine(() => session.isOver)]
  return (text: string) => {
    const inTurn = text.startsWith('{"t":"heartbeat"') ? beats : others
    return inTurn(async () => {
      const frame = readFrame(text)
      if (frame && frame.t !== 'hello') await take(frame)
      else session.socket.close(POLICY, 'not a frame')
    })
  }
}

/** Small ones in one piece, so that they are begun as they come. */
function inPieces(frame: AgentFrame, take: (frame: AgentFrame) => Promise<void>): ReadFrame {
  if (frame.t !== 'entries') return { weight: 0, pieces: [() => take(frame)] }
  const { t, batches } = frame
  const weight = batches.reduce((sum, { entries }) => sum + 1 + entries.length, 0)
  if (batches.length <= BATCHES_AT_ONCE) return { weight, pieces: [() => take(frame)] }
  const pieces = []
  for (let from = 0; from < batches.length; from += BATCHES_AT_ONCE) {
    const piece = batches.slice(from, from + BATCHES_AT_ONCE)
    pieces.push(() => take({ t, batches: piece }))
  }
  return { weight, pieces }
}
