import type { RunnerIdentity } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { type AgentFrame, type CancelOrder, type CoordinatorFrame, type EntryBatch, type Placement, PROTOCOL } from '@windlass/shared/wire/agent.ts'
import * as placements from '../placements/store.ts'
import { loseRuns } from '../runs/lose.ts'
import type { AgentSocket } from './agent-socket.ts'
import { agentSettings } from './settings.ts'
import * as store from './store.ts'

/** WebSocket close codes: the sender broke the protocol; something broke on our side, come again. */
const BAD_FRAME = 1008
const TRY_AGAIN = 1013

/**
 * One connection of an agent. Frames are taken as they come, and answered when what they ask is committed; a connection
 * that fails in any way is closed, and the agent says everything again on the next: nothing here is worth keeping.
 */
export function serveAgent(deps: Deps, runner: RunnerIdentity, socket: AgentSocket): void {
  const tell = (frame: CoordinatorFrame) => socket.send(JSON.stringify(frame))
  let welcomed = false

  socket.onClose(() => {
    deps.sockets.leave(runner.id, socket)
    deps.log('agent.disconnected', { runnerId: runner.id })
  })
  socket.onMessage((text) => {
    const frame = read(text)
    if (!frame || (frame.t !== 'hello' && !welcomed)) return socket.close(BAD_FRAME, frame ? 'hello comes first' : 'not a frame')
    take(frame).catch((error: unknown) => {
      deps.log.warn('agent.frame.failed', { runnerId: runner.id, frame: frame.t, error })
      socket.close(TRY_AGAIN, 'the coordinator could not take it; connect again')
    })
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
        return tell({ t: 'beat', n: frame.n, ...(await renewed(frame.holds)) })
      case 'renew':
        return renew(frame.runs)
    }
  }

  async function hello(frame: Extract<AgentFrame, { t: 'hello' }>): Promise<void> {
    if (frame.protocol !== PROTOCOL) {
      const message = `This coordinator speaks protocol ${PROTOCOL}, the agent ${frame.protocol}. Install an agent of the coordinator's version.`
      tell({ t: 'refused', code: 'UPGRADE_REQUIRED', message })
      return socket.close(BAD_FRAME, message)
    }
    deps.sockets.join(runner.id, socket)
    const mine = new Set(frame.holds.map(([run, epoch]) => placements.placementKey(run, epoch)))
    const held = await placements.heldBy(deps.db, runner.id)
    const known = held.filter((row) => mine.has(placements.placementKey(row.runId, row.epoch)))
    await forget(held.filter((row) => !mine.has(placements.placementKey(row.runId, row.epoch))))
    await store.noteHello(deps.db, runner.id, frame)
    deps.log('agent.connected', { runnerId: runner.id, name: runner.name, version: frame.version, holds: frame.holds.length })
    tell({
      t: 'welcome',
      settings: agentSettings(deps.config),
      resume: known.map((row) => ({ run: row.runId, epoch: row.epoch, seq: row.seq })),
      stale: staleAmong(frame.holds, known),
      cancel: await cancelOrders(deps, known),
    })
  }

  /** What the database gives to this agent and the agent does not know of: it was restarted, or the answer never arrived. */
  async function forget(rows: placements.Held[]): Promise<void> {
    const gone = new Set(rows.map((row) => placements.placementKey(row.runId, row.epoch)))
    await loseRuns(deps, [...new Set(rows.map((row) => row.runId))], {
      reason: 'its agent was started again and does not know it any more',
      isLost: (placement) => gone.has(placements.placementKey(placement.runId, placement.epoch)),
    })
  }

  async function accept(runs: Placement[]): Promise<void> {
    const taken = await Promise.all(runs.map(([runId, epoch]) => deps.acceptances.add({ runId, runnerId: runner.id, epoch })))
    tell({ t: 'accepted', runs: runs.filter((_, i) => taken[i]), no: runs.filter((_, i) => !taken[i]) })
  }

  async function entries(batch: EntryBatch): Promise<void> {
    const applied = await deps.entries.add({ ...batch, runnerId: runner.id })
    const { run, epoch } = batch
    if (applied.kind === 'stale') tell({ t: 'stale', runs: [[run, epoch]] })
    else if (applied.kind === 'resume') tell({ t: 'resume', runs: [{ run, epoch, seq: applied.seq }] })
    else acknowledge({ run, epoch, seq: applied.seq })
  }

  let acks: { run: string; epoch: number; seq: number }[] = []

  /** The batches of one commit are acknowledged in one frame. */
  function acknowledge(ack: (typeof acks)[number]): void {
    if (acks.push(ack) > 1) return
    queueMicrotask(() => {
      setImmediate(() => {
        const frame = { t: 'ack', acks } as const
        acks = []
        tell(frame)
      })
    })
  }

  async function renewed(holds: Placement[]): Promise<{ stale: Placement[]; cancel: CancelOrder[] }> {
    const rows = await placements.renew(deps.db, runner.id, holds, deps.config.leaseMs)
    return { stale: staleAmong(holds, rows), cancel: await cancelOrders(deps, rows) }
  }

  async function renew(runs: Placement[]): Promise<void> {
    const held = await placements.heldBy(deps.db, runner.id)
    const mine = held.filter((row) => row.accepted && runs.some(([run, epoch]) => run === row.runId && epoch === row.epoch))
    const minted = mine.map(async ({ runId, epoch }) => ({
      run: runId,
      epoch,
      token: await deps.runTokens.mint({ runId, epoch, orgId: runner.orgId, runnerId: runner.id }),
    }))
    tell({ t: 'tokens', runs: await Promise.all(minted) })
  }
}

function staleAmong(holds: readonly Placement[], known: { runId: string; epoch: number }[]): Placement[] {
  const alive = new Set(known.map((row) => placements.placementKey(row.runId, row.epoch)))
  return holds.filter(([run, epoch]) => !alive.has(placements.placementKey(run, epoch)))
}

/** The runs among these that are to be stopped, each with the grace of its descriptor. */
export async function cancelOrders(deps: Pick<Deps, 'versions'>, rows: placements.Renewed[]): Promise<CancelOrder[]> {
  const asked = rows.filter((row) => row.status === 'cancelling')
  return Promise.all(
    asked.map(async (row) => ({
      run: row.runId,
      epoch: row.epoch,
      reason: row.cancelReason ?? '',
      graceMs: (await deps.versions.get(row.versionId)).descriptor.cancelGraceMs,
    })),
  )
}

/** Sends what is to be cancelled to those of these runners that are connected here. */
export async function tellCancels(deps: Pick<Deps, 'db' | 'versions' | 'sockets'>, runnerIds: readonly string[]): Promise<void> {
  const byRunner = Map.groupBy(await placements.toCancel(deps.db, runnerIds), (row) => row.runnerId)
  for (const [runnerId, rows] of byRunner) deps.sockets.tell(runnerId, { t: 'cancel', runs: await cancelOrders(deps, rows) })
}

const KINDS = new Set(['hello', 'accept', 'entries', 'heartbeat', 'renew'])

/** The shape of a frame as far as a wrong one could hurt; what is inside is judged where it is used. */
function read(text: string): AgentFrame | undefined {
  try {
    const frame = JSON.parse(text) as Record<string, unknown>
    if (!KINDS.has(frame.t as string)) return undefined
    for (const list of ['holds', 'runs']) if (frame[list] !== undefined && !isPlacements(frame[list])) return undefined
    if (frame.t === 'entries' && !isBatches(frame.batches)) return undefined
    return frame as unknown as AgentFrame
  } catch {
    return undefined
  }
}

function isPlacements(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => Array.isArray(one) && typeof one[0] === 'string' && Number.isSafeInteger(one[1]))
}

function isBatches(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => isBatch(one as Record<string, unknown> | null))
}

function isBatch(one: Record<string, unknown> | null): boolean {
  if (typeof one?.run !== 'string' || !Number.isSafeInteger(one.epoch) || !Number.isSafeInteger(one.first) || (one.first as number) < 1) return false
  return Array.isArray(one.entries) && one.entries.length > 0 && one.entries.every(isEntry)
}

function isEntry(entry: unknown): boolean {
  if (!Array.isArray(entry) || !Number.isSafeInteger(entry[1])) return false
  if (entry[0] === 'e') return typeof entry[2] === 'string' && typeof entry[3] === 'string'
  if (entry[0] === 'end') return typeof (entry[2] as { how?: unknown } | null)?.how === 'string' && Number.isFinite(entry[3])
  return entry[0] === 'start'
}
