import { readFrame } from './frames.ts'
import type { AgentSocket, ClosedBy } from './agent-socket.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Deps } from '../deps.ts'
import type { AgentFrame, CoordinatorFrame, EntryBatch, Placement } from '@windlass/shared/wire/agent.ts'
import { createSample } from '../limits/sample.ts'
import { takeBackDeclined } from '../placements/claim.ts'
import { renewTokens } from '../placements/leases.ts'
import { tellWakes } from '../placements/wakes.ts'
import { createBacklog, createLine } from './backlog.ts'
import { greet } from './hello.ts'
import { closeByAgent, REVOKED_MESSAGE } from './intake.ts'
import { createPromise, type Promised } from './promise.ts'
import * as store from './store-session.ts'

/** WebSocket close codes: the sender broke the protocol; something broke on our side, come again. */
const BAD_FRAME = 1008
const TRY_AGAIN = 1013

/** All connections share one sample, so that nobody gets more lines by connecting again. */
const leaves = createSample()

/** One connection, as its frames see it. */
export interface Session {
  deps: Deps
  runner: RunnerIdentity
  socket: AgentSocket
  /** By which the agent reaches us. */
  baseUrl: string
  promised: Promised
  /** Which start of the agent speaks here, once it was let in. */
  instance: string | undefined
  /** It was closed meanwhile. */
  isOver: boolean
  tell: (frame: CoordinatorFrame) => void
}

/**
 * One connection of an agent. Frames are taken as they come, and answered when what they ask is committed; a connection
 * that fails in any way is closed, and the agent says everything again on the next: nothing here is worth keeping.
 */
export function serveAgent(deps: Deps, runner: RunnerIdentity, socket: AgentSocket, baseUrl: string): void {
  const tell = (frame: CoordinatorFrame) => socket.send(JSON.stringify(frame))
  const session: Session = {
    deps,
    runner,
    socket,
    baseUrl,
    promised: createPromise(deps, runner),
    instance: undefined,
    isOver: false,
    tell,
  }
  /** Whether the agent was let in; undefined before its hello. */
  let entered: Promise<boolean> | undefined
  const backlog = createBacklog()
  const acknowledge = createAcknowledge(tell)
  /** Runs work that opens transactions of its own, or has the answers of group commits looked up. */
  const oneByOne = createLine(() => session.isOver)
  /** Runs heartbeats only: nothing else may hold up a lease. */
  const beatByBeat = createLine(() => session.isOver)
  let heardAt = performance.now()

  socket.onClose((by) => {
    session.isOver = true
    deps.sockets.leave(runner.id, socket)
    deps.log('agent.disconnected', { runnerId: runner.id, by })
    void noteEnd(by)
  })
  socket.onMessage((text) => {
    if (session.isOver) return
    const frame = readFrame(text)
    if (!frame || (frame.t === 'hello') === (entered !== undefined))
      return socket.close(BAD_FRAME, !frame ? 'not a frame' : entered ? 'hello comes once' : 'hello comes first')
    const place = backlog.enter(frame.t, text.length)
    if (typeof place === 'string') return socket.close(BAD_FRAME, place)
    take(frame)
      .catch((error: unknown) => {
        deps.log.warn('agent.frame.failed', { runnerId: runner.id, frame: frame.t, error })
        socket.close(TRY_AGAIN, 'the coordinator could not take it; connect again')
      })
      .finally(() => place.leave())
  })

  async function noteEnd(by: ClosedBy): Promise<void> {
    try {
      if (!(await entered)) return
      await deps.disconnections.add({ runnerId: runner.id, by, silentMs: performance.now() - heardAt })
    } catch (error) {
      deps.log.debug('agent.disconnected.unnoted', { runnerId: runner.id, error })
    }
  }

  async function take(frame: AgentFrame): Promise<void> {
    if (frame.t === 'hello') return hello(frame)
    if (!(await entered)) return
    // An agent that was refused may say what has become of its runs, and nothing else.
    if (deps.sockets.isRefused(socket) && frame.t !== 'entries') return
    return obey(frame)
  }

  async function obey(frame: Exclude<AgentFrame, { t: 'hello' }>): Promise<void> {
    switch (frame.t) {
      case 'accept':
        return accept(frame.runs)
      case 'decline':
        await oneByOne(() => takeBackDeclined(deps, runner, frame.runs))
        return
      case 'entries':
        await Promise.all(frame.batches.map(entries))
        return
      case 'heartbeat':
        return beatByBeat(() => heartbeat(frame))
      case 'leave':
        return oneByOne(() => leave(frame))
      case 'renew':
        return oneByOne(async () => tell({ t: 'tokens', runs: await renewTokens(deps, runner, frame.runs) }))
    }
  }

  async function leave({ reason, deadlineMs }: Extract<AgentFrame, { t: 'leave' }>): Promise<void> {
    const facts = leaves(runner.id)
    if (facts) deps.log('agent.leaves', { runnerId: runner.id, reason, ...facts })
    await closeByAgent(deps, runner, { reason, deadlineMs, instance: session.instance })
  }

  async function hello(frame: Extract<AgentFrame, { t: 'hello' }>): Promise<void> {
    entered = greet(session, frame)
    await entered
    heardAt = performance.now()
  }

  async function heartbeat({
    n,
    holds,
    slots,
    facts,
    fenceMs,
  }: Extract<AgentFrame, { t: 'heartbeat' }>): Promise<void> {
    const { leaseMs, news } = await session.promised.renew(fenceMs)
    const [{ intake, ...orders }] = await Promise.all([
      deps.beats.add({ runnerId: runner.id, holds, leaseMs }),
      (slots !== undefined || facts) && store.noteFacts(deps.db, runner.id, { slots, facts }),
    ])
    heardAt = performance.now()
    // The word of it was lost on its way.
    if (intake?.state === 'revoked') return deps.sockets.refuse(runner.id, 'REVOKED', REVOKED_MESSAGE)
    const now = Date.now()
    tell({ t: 'beat', n, ...orders, ...(news && { settings: news }), ...(intake && { intake }), now })
    // What it can do now may fit to what waits.
    if (facts || slots !== undefined) deps.dispatchers.poke(runner.poolId)
    if (holds.length > 0) await tellWakes(deps, [runner.id])
  }

  async function accept(runs: Placement[]): Promise<void> {
    const { leaseMs } = await session.promised.lease()
    const taken = await Promise.all(
      runs.map(([runId, epoch]) => deps.acceptances.add({ runId, runnerId: runner.id, epoch, leaseMs })),
    )
    const late = runs.filter((_, i) => taken[i] === 'late')
    tell({ t: 'accepted', runs: runs.filter((_, i) => taken[i] !== 'late'), no: late })
    // An order that overtook the offer found an agent that did not know the run yet.
    if (taken.includes('cancelling')) await oneByOne(() => deps.tellCancels(runner.id))
    if (taken.includes('resuming')) await oneByOne(() => tellWakes(deps, [runner.id]))
  }

  async function entries(batch: EntryBatch): Promise<void> {
    const applied = await deps.entries.add({ ...batch, runnerId: runner.id, orgId: runner.orgId })
    const { run, epoch } = batch
    if (applied.kind === 'stale') tell({ t: 'stale', runs: [[run, epoch]] })
    else if (applied.kind === 'resume') tell({ t: 'resume', runs: [{ run, epoch, seq: applied.seq }] })
    else acknowledge({ run, epoch, seq: applied.seq })
  }
}

interface Ack {
  run: string
  epoch: number
  seq: number
}

/** The batches of one commit are acknowledged in one frame. */
function createAcknowledge(tell: Session['tell']): (ack: Ack) => void {
  let acks: Ack[] = []
  return (ack) => {
    if (acks.push(ack) > 1) return
    setImmediate(() => {
      const frame = { t: 'ack', acks } as const
      acks = []
      tell(frame)
    })
  }
}
