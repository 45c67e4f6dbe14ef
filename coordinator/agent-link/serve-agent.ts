import type { AgentFrame, CoordinatorFrame, EntryBatch, Placement } from '@windlass/shared/wire/agent.ts'
import { readFrame, saysEntries } from './frames.ts'
import type { AgentSocket, ClosedBy } from './agent-socket.ts'
import type { RunnerIdentity } from '../actor.ts'
import { createSample } from '../limits/sample.ts'
import { takeBackDeclined } from '../dispatch/claim.ts'
import { givenAmong } from '../engine/commit/acceptances.ts'
import type { Applied } from '../engine/rules/batch.ts'
import { renewTokens } from '../engine/commit/leases.ts'
import { tellWakes } from '../dispatch/wakes.ts'
import { createLine, type Line } from './backlog.ts'
import type { ReadFrame } from './frame-queue.ts'
import { greet } from './hello.ts'
import { closeByAgent, REVOKED_MESSAGE } from '../runners/intake.ts'
import { createLeaseTerms } from './lease-terms.ts'
import type { Session, SessionNeeds } from './session.ts'
import * as store from './store.ts'

/** Batches that are handed on in one turn of the event loop; each of them takes some 10 µs. */
const BATCHES_AT_ONCE = 250

/** Longer frames than most agents have wait for those before them. */
const LONG_CHARS = 16 * 1024
/** So long after the last time. */
const REMIND_MS = 1000

/** WebSocket close codes: the sender broke the protocol; something broke on our side, come again. */
const BAD_FRAME = 1008
const TRY_AGAIN = 1013

/** All connections share one sample, so that nobody gets more lines by connecting again. */
const leaves = createSample()

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
    instance: undefined,
    isOver: false,
    tell,
  }
  /** Whether the agent was let in; undefined before its hello. */
  let entered: Promise<boolean> | undefined
  const answer = createAnswers(tell)
  const retold = createRetelling(() => oneByOne(() => tellWakes(deps, [runner.id])))
  /** Runs work that opens transactions of its own, or has the answers of group commits looked up. */
  const oneByOne = createLine(() => session.isOver)
  /** Runs heartbeats only: nothing else may hold up a lease. */
  const beatByBeat = createLine(() => session.isOver)
  const remind = createReminder(session)
  const later = readLater(session, take)
  let heardAt = performance.now()

  const close = (code: number, reason: string) => socket.close(code, reason)
  const queue = deps.sockets.frames.open(runner, { read, failed, close })

  socket.onClose((by) => {
    session.isOver = true
    queue.end()
    deps.sockets.leave(runner.id, socket)
    deps.log('agent.disconnected', { runnerId: runner.id, by })
    void noteEnd(by)
  })
  socket.onMessage((text) => queue.add(text))

  function read(text: string): ReadFrame | undefined {
    if (entered && text.length > LONG_CHARS && !saysEntries(text)) return { weight: 0, pieces: [() => later(text)] }
    const frame = readFrame(text)
    if (frame && (frame.t === 'hello') === (entered === undefined)) return inPieces(frame, take)
    socket.close(BAD_FRAME, !frame ? 'not a frame' : entered ? 'hello comes once' : 'hello comes first')
    return undefined
  }

  function failed(error: unknown): void {
    deps.log.warn('agent.frame.failed', { runnerId: runner.id, error })
    socket.close(TRY_AGAIN, 'the coordinator could not take it; connect again')
  }

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
        return accept(session, frame.runs, oneByOne)
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
    if (mayLeave(deps, runner, reason))
      await closeByAgent(deps, runner, { reason, deadlineMs, instance: session.instance })
  }

  async function hello(frame: Extract<AgentFrame, { t: 'hello' }>): Promise<void> {
    entered = greet(session, frame)
    await entered
    heardAt = performance.now()
  }

  async function heartbeat(frame: Extract<AgentFrame, { t: 'heartbeat' }>): Promise<void> {
    const { n, holds, slots, facts, fenceMs } = frame
    const { leaseMs, news } = await session.terms.renew(fenceMs)
    const [{ intake, ...orders }] = await Promise.all([
      deps.beats.add({ runnerId: runner.id, orgId: runner.orgId, holds, leaseMs }),
      (slots !== undefined || facts) && store.noteFacts(deps.db, runner.id, { slots, facts }),
    ])
    heardAt = performance.now()
    // The word of it was lost on its way.
    if (intake?.state === 'revoked') return deps.sockets.refuse(runner.id, 'REVOKED', REVOKED_MESSAGE)
    const now = Date.now()
    tell({ t: 'beat', n, ...orders, ...(news && { settings: news }), ...(intake && { intake }), now })
    // What it can do now may fit to what waits.
    if (facts || slots !== undefined) deps.dispatchers.poke(runner.poolId)
    if (holds.length > 0) void remind().catch(failed)
  }

  async function entries(batch: EntryBatch): Promise<void> {
    const applied = await deps.entries.add({ ...batch, runnerId: runner.id, orgId: runner.orgId })
    await retold(applied)
    const { run, epoch } = batch
    answer(applied.kind, { run, epoch, seq: applied.kind === 'stale' ? 0 : applied.seq })
  }
}

function mayLeave({ sockets, log }: SessionNeeds, { id: runnerId }: RunnerIdentity, reason: string): boolean {
  const isObeyed = sockets.leaves.take(runnerId)
  const facts = leaves(runnerId)
  if (facts) log('agent.leaves', { runnerId, reason, isObeyed, ...facts })
  return isObeyed
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
      else session.socket.close(BAD_FRAME, 'not a frame')
    })
  }
}

/**
 * Says what an agent has not been given once more, with its heartbeats, but not with each of many. Heartbeats do not
 * wait for it: nothing may hold up the next one.
 */
function createReminder({ deps, runner }: Session): () => Promise<void> {
  let remindedAt = -Infinity
  let isUnderWay = false
  return async () => {
    if (isUnderWay || performance.now() - remindedAt < REMIND_MS) return
    isUnderWay = true
    const leave = await deps.sockets.wakes.take(runner.orgId)
    try {
      await tellWakes(deps, [runner.id])
    } finally {
      leave()
      remindedAt = performance.now()
      isUnderWay = false
    }
  }
}

async function accept({ deps, runner, terms, tell }: Session, runs: Placement[], oneByOne: Line): Promise<void> {
  const { leaseMs } = await terms.lease()
  const { id: runnerId, orgId } = runner
  const { given, others } = await givenAmong(deps.db, runnerId, runs)
  const taken = await Promise.all(
    given.map(([runId, epoch]) => deps.acceptances.add({ runId, runnerId, orgId, epoch, leaseMs })),
  )
  const late = given.filter((_, i) => taken[i] === 'late')
  tell({ t: 'accepted', runs: given.filter((_, i) => taken[i] !== 'late'), no: [...late, ...others] })
  // An order that overtook the offer found an agent that did not know the run yet.
  if (taken.includes('cancelling')) await oneByOne(() => deps.tellCancels(runnerId))
  if (taken.includes('resuming')) await oneByOne(() => tellWakes(deps, [runnerId]))
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

/**
 * What was told of entries that are sent again may be lost: refusals of calls, which a program that has returned has to
 * be given before its calls are acknowledged. Until they are told again nothing is acknowledged, as what comes behind
 * such entries acknowledges them as well.
 */
function createRetelling(tellAgain: () => Promise<void>): (applied: Applied) => Promise<void> | undefined {
  let telling: Promise<void> | undefined
  return (applied) => {
    if (applied.kind === 'ack' && applied.isRepeated) telling = tellAgain()
    return telling
  }
}

interface Answer {
  run: string
  epoch: number
  seq: number
}

/** The batches of one commit are answered in one frame of each kind. */
function createAnswers(tell: Session['tell']): (kind: Applied['kind'], answer: Answer) => void {
  let gathered: Record<Applied['kind'], Answer[]> | undefined
  const flush = () => {
    const { ack: acks, stale, resume } = gathered!
    gathered = undefined
    if (acks.length > 0) tell({ t: 'ack', acks })
    if (stale.length > 0) tell({ t: 'stale', runs: stale.map(({ run, epoch }) => [run, epoch]) })
    if (resume.length > 0) tell({ t: 'resume', runs: resume })
  }
  return (kind, answer) => {
    if (!gathered) {
      gathered = { ack: [], stale: [], resume: [] }
      setImmediate(flush)
    }
    gathered[kind].push(answer)
  }
}
