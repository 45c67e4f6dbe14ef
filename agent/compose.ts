import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { AgentSettings, CoordinatorFrame, Placement } from '@windlass/shared/wire/agent.ts'
import { createBell } from './bell.ts'
import { createChecks } from './checks/checks.ts'
import { hostChecks } from './checks/host-checks.ts'
import { watchInForce } from './config.ts'
import type { AgentConfig } from './config.ts'
import { createFacts } from './facts.ts'
import { createHooks } from './hooks/hooks.ts'
import type { Identity } from './identity.ts'
import { openInstance } from './instance.ts'
import { createIntake } from './intake.ts'
import type { Intake } from './intake.ts'
import { isolationChecks } from './isolation/checks.ts'
import { takeUsers } from './isolation/own-users.ts'
import { openKeys } from './keys.ts'
import { createBeats } from './lease/beats.ts'
import { createClock } from './link/clock.ts'
import { createCredential, createFormerCredentials } from './link/credential.ts'
import { createLink } from './link/link.ts'
import { longestPauseMs } from './link/pauses.ts'
import type { LinkListener } from './link/link.ts'
import { createRest } from './link/rest.ts'
import { createSelf } from './link/self.ts'
import { createSleeps } from './link/sleeps.ts'
import { createUpload } from './link/upload.ts'
import { giveUpGap, obey } from './loops/control.ts'
import { freeMemoryShare } from './os/free-memory.ts'
import { createBundles } from './run/bundle/bundles.ts'
import type { FormerWorkspaces } from './run/hosts/former-workspaces.ts'
import { endLeftovers } from './run/hosts/leftovers.ts'
import { createProcesses } from './run/hosts/processes.ts'
import { createAgentRuns } from './run/agent-runs.ts'
import { createParking } from './run/parking.ts'
import { keepLeftLines } from './run/program/left-lines.ts'
import { createSecrets } from './run/secrets.ts'
import { createSlots } from './run/slots.ts'
import { placementOf, type Held } from './run/spool/held.ts'
import { openSpool } from './run/spool/spool.ts'
import type { Spool } from './run/spool/spool.ts'
import { createActivity } from './status/activity.ts'
import { createLeaving } from './stop.ts'
import { findPrograms, openRecords } from './takeover/records.ts'
import type { ProgramRecord } from './takeover/records.ts'
import { markOfHeld, takeBack } from './takeover/take-back.ts'
import { createTakeover } from './takeover/takeover.ts'

/** What has to be put away at the end, the last first. */
export type Made = { undo(): unknown }[]

/** Until the first `welcome`. */
const SETTINGS: AgentSettings = { heartbeatMs: 10_000, fenceMs: 50_000, cancelGraceMs: 10_000, pollMs: 25_000 }

interface Start {
  identity: Identity
  /** Those of agents before this one, which are being removed. */
  workspaces?: FormerWorkspaces
}

export type Composed = Awaited<ReturnType<typeof compose>>

/**
 * Everything long-lived, in phases: each uses what the one before has built. Nothing of it speaks to the coordinator
 * before the loops run.
 */
export async function compose(config: AgentConfig, { identity, workspaces }: Start, log: Log, made: Made) {
  const { former, isolation, ...state } = await openState(config, identity, log, made)
  const host = await openHost({ ...state, former, isolation, workspaces }, made)
  const runs = openRuns({ ...host, former })
  const deps = openLine(runs)
  const { found, lease } = former
  const taking = lease ? found.map(({ record, mark }) => takeBack(deps, record, mark, lease)) : []
  for (const each of taking) each.catch((error: unknown) => log.error('run.take-back.failed', { error }))
  return { deps, ...listen(deps) }
}

/** What the state folder holds, of this agent and of the one before it. What nobody takes back is at its end. */
async function openState(config: AgentConfig, identity: Identity, log: Log, made: Made) {
  const { home } = config
  const clock = createClock()
  const keys = await openKeys(home, identity)
  const credential = createCredential(identity.runner, keys, clock)
  const formerCredentials = createFormerCredentials(identity.runner, keys, clock)
  const start = await openInstance(home)
  const livesFolder = path.join(home, 'lives')
  const { programs: before, ...beforeUs } = findPrograms(livesFolder)
  const records = openRecords(livesFolder)
  const { runBytes, totalBytes } = config.spool
  const offsetMs = () => clock.offsetMs
  const spool = await openSpool({ folder: path.join(home, 'spool'), runBytes, totalBytes, offsetMs, log })
  made.push({ undo: () => spool.close() })
  const found = before.flatMap((record) => {
    const mark = markOfHeld(spool.find(record.offer.run, record.offer.epoch))
    return mark ? [{ record, mark }] : []
  })
  const programs = found.map(({ record }) => record)
  const { isolation, lock } = await takeUsers(config.isolation, config)
  made.push({ undo: () => lock?.release() })
  await endLeftovers(home, log, isolation, programs)
  const killed = killedWith(spool, programs)
  const former = { ...beforeUs, found, programs }
  const sleeps = createSleeps()
  const signing = { clock, keys, credential, formerCredentials }
  return { config, log, ...signing, start, sleeps, records, spool, killed, isolation, former, ...says(former) }
}

/** How the fleet is to behave. Until the coordinator says another lease, that which it said last holds. */
function says({ lease }: { lease: { fenceMs: number } | undefined }) {
  const { fenceMs } = lease ?? SETTINGS
  const unsaid = { ...SETTINGS, fenceMs }
  /** As the coordinator said last. */
  const settings = { current: unsaid }
  return { settings, said: () => (settings.current === unsaid ? undefined : settings.current) }
}

type State = Awaited<ReturnType<typeof openState>>

/** What executes programs on this machine, and what it says about itself. */
async function openHost({ former, isolation, workspaces, ...state }: State & Omit<Start, 'identity'>, made: Made) {
  const { config, log, settings, records, spool } = state
  const { home, environment, spares } = config
  const pool = () => settings.current.pool
  const warn = (name: string, about?: Record<string, unknown>) => log.warn(name, about)
  const kinds = { isolation, pool, records, found: former.programs, guard: former, workspaces }
  const processes = await createProcesses({ home, environment, spares, ...kinds, log: warn })
  made.push({ undo: () => processes.close() })
  const rest = createRest(config.url, state.credential, state.clock)
  const folder = path.join(home, 'bundles')
  const inUse = former.programs.map(({ offer }) => offer.bundle.digest)
  const bundles = await createBundles({ folder, cacheBytes: config.bundleCacheBytes, inUse, rest, log })
  made.push({ undo: () => bundles.close() })
  const platform = `${process.platform}-${process.arch}`
  const capabilities = [...(config.hooks.folder === undefined ? [] : ['hooks']), ...(await processes.capabilities())]
  const facts = createFacts({ labels: config.labels, platform, capabilities, isolation: null })
  const hooks = createHooks({ ...config.hooks, environment, log })
  made.push({ undo: () => hooks.close() })
  const ofHost = [...hostChecks(config, { spool, hooks, bundles }), ...isolationChecks(processes, facts)]
  const checks = createChecks(ofHost, { facts, log, freshMs: config.paces.freshMs })
  /** What machine and pool say together. */
  const inForce = watchInForce(config, pool)
  return { ...state, processes, rest, bundles, facts, hooks, checks, inForce }
}

type Host = Awaited<ReturnType<typeof openHost>> & Pick<State, 'former'>

/** The runs that it has, and the room for them. */
function openRuns({ former, ...host }: Host) {
  const { config, log, spool, inForce } = host
  const intake = createIntake()
  /** Rings when a slot or the connection may have become free. */
  const claimBell = createBell()
  const agentRuns = createAgentRuns()
  const slots = createSlots({ total: () => inForce().slots, computing: () => agentRuns.computing(), bell: claimBell })
  agentRuns.onFreed(() => slots.freed())
  const parking = createParking({
    slots,
    ...config.parking,
    isCommitted: ({ offer }, seq) => (spool.find(offer.run, offer.epoch)?.acked ?? 0) >= seq,
    memoryFree: freeMemoryShare,
    memoryMs: config.paces.memoryMs,
    log,
    ageMs: () => inForce().parkedMs,
    closed: () => closedBy(intake),
  })
  intake.onChange(() => parking.look())
  const beats = createBeats(createBell(), former.lease)
  host.facts.onChange(() => beats.bell.ring())
  const secrets = createSecrets(host.rest)
  const takeover = createTakeover({ ...host, lease: former.lease, found: former.programs })
  const ofRuns = { agentRuns, slots, parking, secrets, takeover, leftLines: keepLeftLines() }
  return { ...host, ...ofRuns, intake, claimBell, beats, activity: createActivity() }
}

/** The connection, and what is said over it. It is not dialled before somebody keeps it. */
function openLine(runs: ReturnType<typeof openRuns>) {
  const { config, log, spool, credential, formerCredentials, clock } = runs
  const { url, paces } = config
  const mostPauseMs = () => longestPauseMs(runs)
  const { refusedMs } = paces
  const link = createLink({ url, credential, formerCredentials, clock, refusedMs, mostPauseMs, log })
  // Without a connection it is not sent; the next refusal asks again.
  runs.secrets.onOldToken(({ offer }) => link.send({ t: 'renew', runs: [[offer.run, offer.epoch]] }))
  const { memoryBytes } = config.spool
  const upload = createUpload({ spool, link, memoryBytes, log, onGap: (held) => giveUpGap(runs, held) })
  const self = createSelf({ ...runs, start: runs.start, settings: runs.said })
  return { ...runs, link, upload, self, leaving: createLeaving(link) }
}

/** What is heard over the connection goes to those whom it concerns. */
function listen(deps: ReturnType<typeof openLine>) {
  const { activity, intake, upload, slots, leaving } = deps
  const { promise: connected, resolve: isConnected } = Promise.withResolvers<void>()
  let total = slots.total()
  const settle = (frame: CoordinatorFrame) => {
    // Whoever waits for a slot may have one now.
    if (slots.total() !== total) slots.freed()
    total = slots.total()
    if (frame.t !== 'welcome') return
    leaving.again()
    isConnected()
  }
  const listener: LinkListener = {
    hello() {
      intake.connected()
      return deps.self.hello()
    },
    onFrame(frame) {
      activity.heard(frame)
      obey(deps, frame)
      settle(frame)
      probe('frame.obeyed', { type: frame.t })
    },
    onDown() {
      activity.down()
      upload.stop()
    },
  }
  /** `connected` resolves with the first `welcome`. */
  return { listener, connected }
}

/** One that is cordoned keeps what it has. */
function closedBy({ isLeaving, notice }: Intake): 'shutdown' | 'draining' | undefined {
  if (isLeaving) return 'shutdown'
  return notice.state === 'open' || notice.state === 'cordoned' ? undefined : 'draining'
}

/** Everything that an earlier process had taken and not brought to an end, but for what goes on. */
function killedWith(spool: Spool, found: readonly ProgramRecord[]): Placement[] {
  const goesOn = ({ run, epoch }: Held) => found.some(({ offer }) => offer.run === run && offer.epoch === epoch)
  return spool
    .held()
    .filter((held) => !held.isEnded && !goesOn(held))
    .map(placementOf)
}
