import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import type { AgentSettings, CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { probe } from '@windlass/shared/probe.ts'
import { createBell } from './bell.ts'
import { createChecks } from './checks/checks.ts'
import { hostChecks } from './checks/host-checks.ts'
import { watchInForce } from './config.ts'
import type { AgentConfig } from './config.ts'
import type { Deps } from './deps.ts'
import { createFacts } from './facts.ts'
import { createHooks } from './hooks/hooks.ts'
import type { Identity } from './identity.ts'
import { openInstance } from './instance.ts'
import { createIntake } from './intake.ts'
import type { Intake } from './intake.ts'
import { isolationChecks } from './isolation/checks.ts'
import { takeUsers } from './isolation/own-users.ts'
import { openKeys } from './keys.ts'
import { createClock } from './link/clock.ts'
import { createCredential } from './link/credential.ts'
import { createLink } from './link/link.ts'
import { createRest } from './link/rest.ts'
import { createSelf } from './link/self.ts'
import { createSleeps } from './link/sleeps.ts'
import { createUpload } from './link/upload.ts'
import type { Upload } from './link/upload.ts'
import { giveUpGap, obey } from './loops/control.ts'
import { createBeats } from './loops/heartbeat.ts'
import { createBundles } from './run/bundle/bundles.ts'
import { freeMemoryShare } from './os/free-memory.ts'
import { keepLeftLines } from './run/program/left-lines.ts'
import { endLeftovers } from './run/hosts/leftovers.ts'
import type { Live } from './run/live.ts'
import { createLives } from './run/lives.ts'
import { createParking } from './run/parking.ts'
import { createProcesses } from './run/hosts/processes.ts'
import { createSecrets } from './run/secrets.ts'
import { createSlots } from './run/slots.ts'
import { openSpool } from './run/spool/spool.ts'
import type { Held } from './run/spool/held.ts'
import type { Spool } from './run/spool/spool.ts'
import { createActivity } from './status/activity.ts'
import { findPrograms, openRecords } from './takeover/records.ts'
import type { Kept } from './takeover/records.ts'
import { markOfHeld, takeBack } from './takeover/take-back.ts'
import { createTakeover } from './takeover/takeover.ts'
import { createLeaving } from './stop.ts'
import type { Leaving } from './stop.ts'

export interface Built {
  deps: Deps
  upload: Upload
  leaving: Leaving
  /** Resolves with the first `welcome`. */
  connected: Promise<void>
}

/** What has to be put away at the end, the last first. */
export type Made = { undo(): unknown }[]

/** Until the first `welcome`. */
const SETTINGS: AgentSettings = { heartbeatMs: 10_000, fenceMs: 50_000, cancelGraceMs: 10_000, pollMs: 25_000 }

/** Everything long-lived of an agent. Nothing of it speaks to the coordinator before its loops run. */
export async function build(config: AgentConfig, identity: Identity, log: Log, made: Made): Promise<Built> {
  const clock = createClock()
  const keys = await openKeys(config.home, identity)
  const credential = createCredential(identity.runner, keys, clock)
  const start = await openInstance(config.home)
  const { runBytes, totalBytes, memoryBytes } = config.spool
  const livesFolder = path.join(config.home, 'lives')
  const before = findPrograms(livesFolder)
  const records = openRecords(livesFolder)
  const offsetMs = () => clock.offsetMs
  const spool = await openSpool({ folder: path.join(config.home, 'spool'), runBytes, totalBytes, offsetMs, log })
  made.push({ undo: () => spool.close() })
  const found = before.programs.flatMap((kept) => {
    const mark = markOfHeld(spool.find(kept.offer.run, kept.offer.epoch))
    return mark ? [{ kept, mark }] : []
  })
  const programs = found.map(({ kept }) => kept)
  const { isolation, lock } = await takeUsers(config.isolation, config)
  made.push({ undo: () => lock?.release() })
  await endLeftovers(config.home, log, isolation, programs)
  reportLost(spool, log, programs)
  // Until the coordinator says another one, that which it said last holds.
  const { fenceMs } = found.length > 0 ? before.lease : SETTINGS
  const unsaid = { ...SETTINGS, fenceMs }
  const settings = { current: unsaid }
  const { home, environment, spares } = config
  const warn = (name: string, about?: Record<string, unknown>) => log.warn(name, about)
  const kinds = { isolation, pool: () => settings.current.pool, records, found: programs }
  const processes = await createProcesses({ home, environment, spares, ...kinds, log: warn })
  made.push({ undo: () => processes.close() })
  const rest = createRest(config.url, credential, clock)
  const bundles = await createBundles({
    folder: path.join(home, 'bundles'),
    cacheBytes: config.bundleCacheBytes,
    rest,
    log,
  })

  const said = () => (settings.current === unsaid ? undefined : settings.current)
  const inForce = watchInForce(config, () => settings.current.pool)
  const intake = createIntake()
  const activity = createActivity()
  const platform = `${process.platform}-${process.arch}`
  const capabilities = [...(config.hooks.folder === undefined ? [] : ['hooks']), ...(await processes.capabilities())]
  const facts = createFacts({ labels: config.labels, platform, capabilities, isolation: null })
  const hooks = createHooks({ ...config.hooks, environment: config.environment, log })
  made.push({ undo: () => hooks.close() })
  const ofHost = [...hostChecks(config, { spool, hooks, bundles }), ...isolationChecks(processes, facts)]
  const checks = createChecks(ofHost, { facts, log, freshMs: config.paces.freshMs })

  const claimBell = createBell()
  const { promise: connected, resolve: isConnected } = Promise.withResolvers<void>()
  const link = createLink({
    url: config.url,
    credential,
    clock,
    log,
    hello: () => self.hello(),
    onFrame: (frame) => {
      activity.heard(frame)
      obey(deps, upload, frame)
      settle(frame)
      probe('frame.obeyed', { type: frame.t })
    },
    onDown: () => {
      activity.down()
      upload.stop()
    },
  })
  const leaving = createLeaving(link)
  let total = inForce().slots
  const settle = (frame: CoordinatorFrame) => {
    // Whoever waits for a slot may have one now.
    if (slots.total() !== total) slots.freed()
    total = slots.total()
    if (frame.t !== 'welcome') return
    leaving.again()
    isConnected()
  }
  const upload = createUpload({ spool, link, memoryBytes, log, onGap: (held) => giveUpGap(deps, held) })
  const lives = createLives(() => slots.freed())
  const slots = createSlots({ total: () => inForce().slots, computing: () => lives.computing(), bell: claimBell })
  const self = createSelf({ instance: start.instance, facts, slots, spool, settings: said })
  const isCommitted = ({ offer }: Live, seq: number) => (spool.find(offer.run, offer.epoch)?.acked ?? 0) >= seq
  const parking = createParking({
    slots,
    ...config.parking,
    isCommitted,
    memoryFree: freeMemoryShare,
    memoryMs: config.paces.memoryMs,
    log,
    ageMs: () => inForce().parkedMs,
    closed: () => closedBy(intake),
  })
  intake.onChange(() => parking.look())
  const beats = createBeats(createBell())
  facts.onChange(() => beats.bell.ring())
  const secrets = createSecrets(rest)
  const parts = { config, log, rest, link, spool, bundles, secrets, processes, lives, slots, parking, beats }
  const takeover = createTakeover({ records, processes, spool, log, lease: before.lease })
  const own = { intake, facts, checks, hooks, activity, inForce, records, takeover }
  const identified = { clock, keys, start, self, sleeps: createSleeps() }
  const deps: Deps = { ...parts, ...own, ...identified, leftLines: keepLeftLines(), claimBell, settings }
  const taking = found.map(({ kept, mark }) => takeBack(deps, kept, mark, before.lease))
  for (const each of taking) each.catch((error: unknown) => log.error('run.take-back.failed', { error }))
  // They are on the list of our own now.
  before.endReaper()
  return { deps, upload, leaving, connected }
}

/** One that is cordoned keeps what it has. */
function closedBy({ isLeaving, word }: Intake): 'shutdown' | 'draining' | undefined {
  if (isLeaving) return 'shutdown'
  return word.state === 'open' || word.state === 'cordoned' ? undefined : 'draining'
}

/** What an earlier process had taken and did not bring to an end died with it. */
function reportLost(spool: Spool, log: Log, found: readonly Kept[]): void {
  const goesOn = ({ run, epoch }: Held) => found.some(({ offer }) => offer.run === run && offer.epoch === epoch)
  const lost = spool.held().filter((held) => !held.isEnded && !goesOn(held))
  for (const { run, epoch } of lost) {
    void spool.append(run, epoch, [['end', Date.now(), { how: 'lost', reason: LOST_REASONS.killed }, 0]])
  }
  spool.flush()
  if (lost.length > 0) log.warn('runs.lost', { runs: lost.map(({ run }) => run) })
}
