import { readFrame } from './frames.ts'
import type { AgentSocket, ClosedBy } from './agent-socket.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Deps } from '../deps.ts'
import type { AgentFrame, CoordinatorFrame, EntryBatch, Placement } from '@windlass/shared/wire/agent.ts'
import { takeBackDeclined } from '../placements/claim.ts'
import { renewTokens } from '../placements/leases.ts'
import { tellWakes } from '../placements/wakes.ts'
import { greet } from './hello.ts'
import { closeByAgent, REVOKED_MESSAGE } from './intake.ts'
import { createPromise, type Promised } from './promise.ts'
import * as store from './store-session.ts'

/** WebSocket close codes: the sender broke the protocol; something broke on our side, come again. */
const BAD_FRAME = 1008
const TRY_AGAIN = 1013

/**
 * What one agent may have under way here, in characters. Ours keeps some 4 Mi unacknowledged and then a frame; one that does
 * not wait would fill our memory.
 */
const MOST_UNDER_WAY = 48 * 1024 * 1024

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
    promised: createPromise(deps, runner.poolId),
    instance: undefined,
    isOver: false,
    tell,
  }
  /** Whether the agent was let in; undefined before its hello. */
  let entered: Promise<boolean> | undefined
  let underWay = 0
  let heardAt = performance.now()

  socket.onClose((by) => {
    session.isOver = true
    deps.sockets.leave(runner.id, socket)
    deps.log('agent.disconnected', { runnerId: runner.id, by })
    void noteEnd(by)
  })
  socket.onMessage((text) => {
    const frame = readFrame(text)
    if (!frame || (frame.t !== 'hello' && !entered))
      return socket.close(BAD_FRAME, frame ? 'hello comes first' : 'not a frame')
    underWay += text.length
    if (underWay > MOST_UNDER_WAY) return socket.close(BAD_FRAME, 'more was sent than may wait for its answer')
    take(frame)
      .catch((error: unknown) => {
        deps.log.warn('agent.frame.failed', { runnerId: runner.id, frame: frame.t, error })
        socket.close(TRY_AGAIN, 'the coordinator could not take it; connect again')
      })
      .finally(() => (underWay -= text.length))
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
        return takeBackDeclined(deps, runner, frame.runs)
      case 'entries':
        await Promise.all(frame.batches.map(entries))
        return
      case 'heartbeat':
        return heartbeat(frame)
      case 'leave': {
        const { reason, deadlineMs } = frame
        deps.log('agent.leaves', { runnerId: runner.id, reason })
        return closeByAgent(deps, runner, { reason, deadlineMs, instance: session.instance })
      }
      case 'renew':
        return tell({ t: 'tokens', runs: await renewTokens(deps, runner, frame.runs) })
    }
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
    if (taken.includes('cancelling')) await deps.tellCancels(runner.id)
    if (taken.includes('resuming')) await tellWakes(deps, [runner.id])
  }

  async function entries(batch: EntryBatch): Promise<void> {
    const applied = await deps.entries.add({ ...batch, runnerId: runner.id, orgId: runner.orgId })
    const { run, epoch } = batch
    if (applied.kind === 'stale') tell({ t: 'stale', runs: [[run, epoch]] })
    else if (applied.kind === 'resume') tell({ t: 'resume', runs: [{ run, epoch, seq: applied.seq }] })
    else acknowledge({ run, epoch, seq: applied.seq })
  }

  let acks: { run: string; epoch: number; seq: number }[] = []

  /** The batches of one commit are acknowledged in one frame. */
  function acknowledge(ack: (typeof acks)[number]): void {
    if (acks.push(ack) > 1) return
    setImmediate(() => {
      const frame = { t: 'ack', acks } as const
      acks = []
      tell(frame)
    })
  }
}
