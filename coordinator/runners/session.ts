import type { RunnerIdentity } from '../actor.ts'
import type { Deps } from '../deps.ts'
import {
  type AgentFrame,
  type CoordinatorFrame,
  type EntryBatch,
  type Placement,
  PROTOCOL,
} from '@windlass/shared/wire/agent.ts'
import { reconcile, renewLeases, renewTokens } from '../placements/leases.ts'
import { tellWakes } from '../placements/wakes.ts'
import type { AgentSocket } from './agent-socket.ts'
import { readFrame } from './frames.ts'
import { agentSettings } from './settings.ts'
import * as store from './store.ts'

/** WebSocket close codes: the sender broke the protocol; something broke on our side, come again. */
const BAD_FRAME = 1008
const TRY_AGAIN = 1013

/**
 * What one agent may have under way here, in characters. Ours keeps some 4 Mi unacknowledged and then a frame; one that does
 * not wait would fill our memory.
 */
const MOST_UNDER_WAY = 48 * 1024 * 1024

/**
 * One connection of an agent. Frames are taken as they come, and answered when what they ask is committed; a connection
 * that fails in any way is closed, and the agent says everything again on the next: nothing here is worth keeping.
 */
export function serveAgent(deps: Deps, runner: RunnerIdentity, socket: AgentSocket): void {
  const tell = (frame: CoordinatorFrame) => socket.send(JSON.stringify(frame))
  let welcomed = false
  let underWay = 0

  socket.onClose(() => {
    deps.sockets.leave(runner.id, socket)
    deps.log('agent.disconnected', { runnerId: runner.id })
  })
  socket.onMessage((text) => {
    const frame = readFrame(text)
    if (!frame || (frame.t !== 'hello' && !welcomed))
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

  async function take(frame: AgentFrame): Promise<void> {
    switch (frame.t) {
      case 'hello':
        welcomed = true
        return hello(frame)
      case 'accept':
        return accept(frame.runs)
      case 'entries':
        await Promise.all(frame.batches.map(entries))
        return
      case 'heartbeat':
        tell({ t: 'beat', n: frame.n, ...(await renewLeases(deps, runner, frame.holds)) })
        return frame.holds.length > 0 ? tellWakes(deps, [runner.id]) : undefined
      case 'leave':
        return deps.log('agent.leaves', { runnerId: runner.id, reason: frame.reason })
      case 'renew':
        return tell({ t: 'tokens', runs: await renewTokens(deps, runner, frame.runs) })
    }
  }

  async function hello(frame: Extract<AgentFrame, { t: 'hello' }>): Promise<void> {
    if (frame.protocol !== PROTOCOL) {
      const message = `This coordinator speaks protocol ${PROTOCOL}, the agent ${frame.protocol}. Install an agent of the coordinator's version.`
      tell({ t: 'refused', code: 'UPGRADE_REQUIRED', message })
      return socket.close(BAD_FRAME, message)
    }
    deps.sockets.join(runner.id, socket)
    const state = await reconcile(deps, runner, frame.holds)
    await store.noteHello(deps.db, runner.id, frame)
    deps.log('agent.connected', {
      runnerId: runner.id,
      runnerName: runner.name,
      version: frame.version,
      holds: frame.holds.length,
    })
    tell({ t: 'welcome', settings: agentSettings(deps.config), ...state })
    await tellWakes(deps, [runner.id])
  }

  async function accept(runs: Placement[]): Promise<void> {
    const taken = await Promise.all(
      runs.map(([runId, epoch]) => deps.acceptances.add({ runId, runnerId: runner.id, epoch })),
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
