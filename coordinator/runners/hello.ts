import type { AgentFrame } from '@windlass/shared/wire/agent.ts'
import { record } from '../audit/record.ts'
import { reconcile } from '../placements/leases.ts'
import { explainLosses, type Return, whatWasLost } from '../placements/losses.ts'
import { tellWakes } from '../placements/wakes.ts'
import { liftOnHello, REVOKED_MESSAGE } from './intake.ts'
import type { Session } from './session.ts'
import * as store from './store-session.ts'
import type { RefusalCode } from './sockets.ts'
import { misfit } from './upgrade.ts'

type Hello = Extract<AgentFrame, { t: 'hello' }>

/** RFC 6455's for an end that breaks the rules, and the most of a reason that its 123 bytes surely take. */
const POLICY = 1008
const REASON_CHARS = 100

const COPY =
  'Another agent goes on with this identity: this state folder is a copy or a backup of its folder. Nothing of what is here is executed. ' +
  'To run an agent here as well, start it with an empty folder and a registration token of its own.'

/** Lets the agent in, or tells why not. Nobody who is not let in takes anything from the agent that is. */
export async function greet(session: Session, frame: Hello): Promise<boolean> {
  const { deps, runner, socket, promised, tell } = session
  const unfit = misfit(frame.protocol, session.baseUrl)
  if (unfit !== undefined) return turnAway(session, 'UPGRADE_REQUIRED', unfit)
  const { settings, ...next } = await promised.settings()
  const before = await store.enter(deps.db, runner.id, frame, { ...next, fenceMs: settings.fenceMs })
  if (!before) return turnAway(session, 'REVOKED', REVOKED_MESSAGE)
  if (!before.isIn) {
    await reportCopy(session, frame)
    return turnAway(session, 'REPLACED', COPY)
  }
  if (session.isOver) return false
  session.instance = frame.instance?.id
  const leaseMs = await promised.entered(settings, before.toldFenceMs)
  deps.sockets.join(runner.id, socket, frame.protocol)
  await liftOnHello(deps, runner, isNewStart(frame, before))
  const back = returnOf(frame, before)
  if (back) await explainLosses(deps, runner, back)
  // The agent may have given this connection up meanwhile, and have got runs over another one.
  if (session.isOver) return false
  const beat = { runnerId: runner.id, holds: frame.holds, leaseMs }
  const since = { at: before.at!, what: back ? whatWasLost(back) : 'daemon' } as const
  const { intake, ...state } = await reconcile(deps, beat, since)
  deps.log('agent.connected', {
    runnerId: runner.id,
    runnerName: runner.name,
    version: frame.version,
    protocol: frame.protocol,
    holds: frame.holds.length,
  })
  tell({ t: 'welcome', settings, ...state, ...(intake && { intake }), now: Date.now() })
  // Its token was looked at a moment before that.
  if (intake?.state === 'revoked') deps.sockets.refuse(runner.id, 'REVOKED', REVOKED_MESSAGE)
  // Its labels may be other ones than before.
  if (frame.facts) deps.dispatchers.poke(runner.poolId)
  await tellWakes(deps, [runner.id])
  return true
}

/** Protocol 2 does not tell one start from another. */
function isNewStart({ instance }: Hello, before: store.Entered): boolean {
  return instance !== undefined && instance.id !== before.instance
}

function returnOf({ instance }: Hello, before: store.Entered): Return | undefined {
  if (!instance || before.instance === null) return undefined
  return { sameInstance: instance.id === before.instance, sameBoot: instance.boot === before.instanceBoot }
}

function turnAway({ socket, tell }: Session, code: RefusalCode, message: string): false {
  tell({ t: 'refused', code, message })
  socket.close(POLICY, message.slice(0, REASON_CHARS))
  return false
}

/**
 * Tells the owner that somebody else has this runner's key. A copy that tries again and again is written down once a
 * minute.
 */
async function reportCopy({ deps, runner }: Session, { instance }: Hello): Promise<void> {
  deps.log.warn('agent.copy.refused', { runnerId: runner.id, runnerName: runner.name, host: instance?.host })
  await deps.db.begin(async (tx) => {
    const { isNews } = await store.noteCopy(tx, runner.id)
    if (!isNews) return
    const by = { kind: 'system', id: 'coordinator', name: 'coordinator', via: 'system', requestId: null } as const
    const target = { type: 'runner', id: runner.id, name: runner.name }
    await record(tx, { ...by, orgId: runner.orgId }, { action: 'runners.copyRefused', target })
  })
}
