import { realpath } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { PROTOCOL } from '@windlass/shared/wire/agent.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import { createBell } from './bell.ts'
import type { AgentConfig } from './config.ts'
import type { Deps } from './deps.ts'
import { EXIT } from './exit-codes.ts'
import { makeStateFolder, obtainIdentity } from './identity.ts'
import type { Identity } from './identity.ts'
import { createCredential } from './link/credential.ts'
import { createLink } from './link/link.ts'
import { createRest } from './link/rest.ts'
import type { Refused } from './link/socket.ts'
import { createUpload } from './link/upload.ts'
import type { Upload } from './link/upload.ts'
import { claimLoop } from './loops/claim.ts'
import { giveUpGap, obey } from './loops/control.ts'
import { fenceLoop } from './loops/fence.ts'
import { createBeats, heartbeatLoop } from './loops/heartbeat.ts'
import { renewLoop } from './loops/renew.ts'
import { createBundles } from './run/bundles.ts'
import { freeMemoryShare } from './run/free-memory.ts'
import { keepLeftLines } from './run/left-lines.ts'
import { endLeftovers } from './run/leftovers.ts'
import type { Live } from './run/live.ts'
import { createLives } from './run/lives.ts'
import { createParking } from './run/parking.ts'
import { createProcesses } from './run/processes.ts'
import { createSecrets } from './run/secrets.ts'
import { createSlots } from './run/slots.ts'
import { openSpool } from './run/spool.ts'
import type { Spool } from './run/spool.ts'
import { lockState } from './state-lock.ts'
import { VERSION } from './version.ts'

export interface Agent {
  readonly runner: string
  readonly org: string
  readonly pool: string
  /** Resolves with the first `welcome` of the coordinator; never, when there is none. */
  readonly connected: Promise<void>
  /** Resolves with an exit code when everything is stopped and put away. */
  readonly done: Promise<number>
  /** Takes no more work and ends when what runs is done, or `stopMs` over. A second call ends it at once. */
  stop(): void
}

/** Until the first `welcome`. */
const SETTINGS: AgentSettings = { heartbeatMs: 10_000, fenceMs: 50_000, cancelGraceMs: 10_000, pollMs: 25_000 }
/** How long the last words may take to reach the coordinator at a stop. They are kept for the next start otherwise. */
const LAST_WORDS_MS = 3_000

/** Starts everything and returns as soon as the agent is registered and its loops run; connecting may take longer. */
export async function startAgent(config: AgentConfig, options: { log: Log; signal?: AbortSignal }): Promise<Agent> {
  const stopping = new AbortController()
  const hurry = new AbortController()
  options.signal?.addEventListener('abort', () => stopping.abort(), { once: true })
  if (options.signal?.aborted) stopping.abort()

  await makeStateFolder(config.home)
  const settled = { ...config, home: await realpath(config.home) }
  const lock = await lockState(settled.home)
  const made: { undo(): unknown }[] = [{ undo: () => lock.release() }]
  try {
    const identity = await obtainIdentity(settled, options.log, stopping.signal)
    const { deps, upload, connected } = await build(settled, identity, options.log, made)
    const done = liveAndTidy(deps, upload, { stopping, hurry: hurry.signal }, made)
    const stop = () => (stopping.signal.aborted ? hurry.abort() : stopping.abort())
    const { runner, org, pool } = identity
    return { runner, org, pool, connected, done, stop }
  } catch (error) {
    await undo(made)
    throw error
  }
}

async function liveAndTidy(deps: Deps, upload: Upload, stops: Stops, made: { undo(): unknown }[]): Promise<number> {
  try {
    return await live(deps, upload, stops)
  } finally {
    await undo(made)
  }
}

/** In reverse order. What cannot be put away must not keep the rest from it. */
async function undo(made: { undo(): unknown }[]): Promise<void> {
  const troubles: unknown[] = []
  for (const each of made.splice(0).toReversed()) {
    try {
      await each.undo()
    } catch (error) {
      troubles.push(error)
    }
  }
  if (troubles.length > 0) throw new AggregateError(troubles, 'The agent could not put everything away')
}

async function build(config: AgentConfig, identity: Identity, log: Log, made: { undo(): unknown }[]) {
  const credential = await createCredential(identity)
  const { runBytes, totalBytes, memoryBytes } = config.spool
  await endLeftovers(config.home, log)
  const spool = await openSpool({ folder: path.join(config.home, 'spool'), runBytes, totalBytes, log })
  made.push({ undo: () => spool.close() })
  reportLost(spool, log)
  const { home, environment, spares } = config
  const processes = await createProcesses({ home, environment, spares, log: (name, facts) => log.warn(name, facts) })
  made.push({ undo: () => processes.close() })
  const rest = createRest(config.url, credential)
  const bundles = await createBundles({
    folder: path.join(home, 'bundles'),
    cacheBytes: config.bundleCacheBytes,
    rest,
    log,
  })

  const claimBell = createBell()
  const holds = () => spool.holds()
  const { promise: connected, resolve: isConnected } = Promise.withResolvers<void>()
  const link = createLink({
    url: config.url,
    credential,
    log,
    hello: () => ({ t: 'hello', protocol: PROTOCOL, version: VERSION, slots: config.slots, holds: holds() }),
    onFrame: (frame) => {
      obey(deps, upload, frame)
      if (frame.t === 'welcome') isConnected()
    },
    onDown: () => upload.stop(),
  })
  const upload = createUpload({ spool, link, memoryBytes, log, onGap: (held) => giveUpGap(deps, held) })
  const lives = createLives(() => slots.freed())
  const slots = createSlots({ total: config.slots, computing: () => lives.computing(), bell: claimBell })
  const isCommitted = ({ offer }: Live, seq: number) => (spool.find(offer.run, offer.epoch)?.acked ?? 0) >= seq
  const parking = createParking({ ...config.parking, slots, isCommitted, memoryFree: freeMemoryShare, log })
  const beats = createBeats(createBell())
  const settings = { current: SETTINGS }
  const secrets = createSecrets(rest)
  const parts = { config, log, rest, link, spool, bundles, secrets, processes, lives, slots, parking, beats }
  const deps: Deps = { ...parts, leftLines: keepLeftLines(), claimBell, settings }
  return { deps, upload, connected }
}

/** What an earlier process had taken and did not bring to an end died with it. */
function reportLost(spool: Spool, log: Log): void {
  const lost = spool.held().filter((held) => !held.isEnded)
  for (const { run, epoch } of lost) {
    void spool.append(run, epoch, [['end', Date.now(), { how: 'lost', reason: 'the agent was killed' }, 0]])
  }
  spool.flush()
  if (lost.length > 0) log.warn('runs.lost', { runs: lost.map(({ run }) => run) })
}

interface Stops {
  stopping: AbortController
  hurry: AbortSignal
}

/** All loops, from their start to the last of them; answers the exit code. */
async function live(deps: Deps, upload: Upload, { stopping, hurry }: Stops): Promise<number> {
  const ending = new AbortController()
  const broken = new AbortController()
  const guarded = async <T>(loop: Promise<T>): Promise<T | undefined> => {
    try {
      return await loop
    } catch (error) {
      deps.log.error('agent.broken', { error })
      broken.abort()
      stopping.abort()
      return undefined
    }
  }
  const linked = guarded(deps.link.keep(ending.signal))
  const others = [claimLoop(deps, stopping.signal), heartbeatLoop(deps, ending.signal)]
  const loops = [...others, fenceLoop(deps, ending.signal), renewLoop(deps, ending.signal)].map(guarded)

  const refused = await Promise.race([linked, fired(stopping.signal)])
  stopping.abort()
  deps.log('agent.stopping', { runs: deps.lives.size })
  const patience = refused ? AbortSignal.abort() : AbortSignal.any([hurry, broken.signal])
  await finishRuns(deps, patience)
  await Promise.race([untilAcked(deps), pause(hurry.aborted || refused ? LAST_WORDS_MS / 10 : LAST_WORDS_MS)])
  ending.abort()
  await Promise.all([linked, ...loops])
  upload.stop()
  return exitCode(refused, broken.signal)
}

/**
 * What only waits is given up at once. Programs that compute may finish for a while; what is left is killed and reported as
 * lost, so that it begins anew elsewhere.
 */
async function finishRuns(deps: Deps, patience: AbortSignal): Promise<void> {
  deps.parking.stop()
  await Promise.race([deps.lives.empty(), pause(deps.config.stopMs, patience)])
  for (const live of deps.lives.all()) live.end('shutdown')
  await deps.lives.empty()
  deps.spool.flush()
}

/** Polled: it happens once in an agent's life, and a notification would burden every acknowledgement. */
async function untilAcked(deps: Deps): Promise<void> {
  const end = performance.now() + LAST_WORDS_MS
  while (deps.link.isReady && deps.spool.held().length > 0 && performance.now() < end) await pause(10)
}

function fired(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return Promise.resolve(undefined)
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}

function exitCode(refused: Refused | undefined, broken: AbortSignal): number {
  if (broken.aborted) return EXIT.internal
  if (!refused) return EXIT.stopped
  return refused.code === 'UPGRADE_REQUIRED' ? EXIT.upgrade : EXIT.refused
}
