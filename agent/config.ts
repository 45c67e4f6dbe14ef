import path from 'node:path'
import type { z } from 'zod'
import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { decodeStrings } from '@windlass/shared/ops/fill-route.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import type { WantedIsolation } from './isolation/own-users.ts'
import { hostIsolation } from './isolation/settings.ts'
import { PACES, type Paces } from './paces.ts'
import { programEnvironment } from './os/environment.ts'
import { Settings } from './settings.ts'

export interface AgentConfig {
  /** Address of the coordinator. */
  url: string
  /** Whether plain http may leave this machine. */
  allowHttp: boolean
  /** Folder of keys, spool, bundles and workspaces. */
  home: string
  name: string
  /** Needed for the first start only. */
  token: string | undefined
  labels: string[]
  /** How many runs at once, where the pool says nothing or this machine says it itself; see `inForce`. */
  slots: number
  /** Booted processes kept in reserve; left to the process host when not set. */
  spares: number | undefined
  /** How long running programs may go on after a stop was asked for. */
  stopMs: number
  parking: {
    /** How long a process that only waits is kept; 0: not at all. */
    ageMs: number
    /** How many such processes are kept. */
    most: number
    /** With less than this share of the memory free, such processes are given up. */
    memoryReserve: number
    /** How long one whose wait is over may wait for a slot before another runner is to have the run. */
    wakeMs: number
  }
  bundleCacheBytes: number
  spool: {
    /** Unsent entries kept in memory; what is beyond is read back from disk. */
    memoryBytes: number
    /** A run with so much unacknowledged is paused. */
    runBytes: number
    /** With so much unacknowledged in all, every run is paused. */
    totalBytes: number
  }
  /** Undefined: 512 MiB, but a tenth of the disk at most. */
  diskReserveBytes: number | undefined
  hooks: { folder: string | undefined; deadlineMs: number }
  /** Where it answers questions about its health; undefined: nowhere. */
  health: { host: string; port: number } | undefined
  /** How runs are kept apart, as far as this machine says. */
  isolation: WantedIsolation
  logFile: string | undefined
  caFile: string | undefined
  /** All that programs inherit. */
  environment: Record<string, string>
  /** Every setting with its value, and who said it. */
  settings: ResolvedSetting[]
  logLevel: Said['WINDLASS_LOG_LEVEL']
  /** Intervals of the loops. Not a setting: only tests change them. */
  paces: Paces
}

/** Who said a setting. What the pool says counts less than what its machine says itself, and more than what we have in mind. */
export type Origin = 'flag' | 'environment' | 'file' | 'pool' | 'default'

export interface ResolvedSetting {
  name: string
  value: unknown
  origin: Origin
}

/** What may be said elsewhere than in the environment. */
interface Besides {
  /** By the names of the settings. */
  flags?: Record<string, string>
  file?: Record<string, string>
}

/** Read by the agent; other `WINDLASS_*` names in the same environment belong to other parts. */
const OURS = /^WINDLASS_(URL$|HOME$|LOG_LEVEL$|AGENT_)/

const NEEDS_URL = 'WINDLASS_URL is missing: set it to the address of the coordinator, such as http://localhost:8787'

/** Reads what was said once. A misspelt `WINDLASS_AGENT_*` must not be silently ignored, so it is refused. */
export function readConfig(
  env: Record<string, string | undefined>,
  { flags = {}, file = {} }: Besides = {},
): AgentConfig {
  const sources = { file: oursIn(file), environment: oursIn(env), flag: oursIn(flags) }
  const said = { ...sources.file, ...sources.environment, ...sources.flag }
  refuseUnknown(Object.keys(said))
  if (!said.WINDLASS_URL) throw new AgentRefusal(EXIT.config, NEEDS_URL)
  const parsed = Settings.safeParse(decodeStrings(Settings, said))
  if (!parsed.success) throw new AgentRefusal(EXIT.config, parsed.error.issues.map(sentence).join('\n'))
  const settings = Object.entries(parsed.data).map(([name, value]) => ({
    name,
    value,
    origin: originOf(name, sources),
  }))
  return { ...toConfig(parsed.data, programEnvironment(env)), settings }
}

/** What is empty counts as not said. */
function oursIn(said: Record<string, string | undefined>): Record<string, string> {
  const ours = Object.entries(said).filter(([name, value]) => OURS.test(name) && value !== undefined && value !== '')
  return Object.fromEntries(ours) as Record<string, string>
}

function originOf(name: string, sources: Record<'file' | 'environment' | 'flag', Record<string, string>>): Origin {
  if (name in sources.flag) return 'flag'
  if (name in sources.environment) return 'environment'
  return name in sources.file ? 'file' : 'default'
}

type Said = z.output<typeof Settings>

function toConfig(s: Said, environment: Record<string, string>): Omit<AgentConfig, 'settings'> {
  return {
    url: s.WINDLASS_URL.replace(/\/+$/, ''),
    allowHttp: s.WINDLASS_AGENT_ALLOW_HTTP,
    home: path.resolve(s.WINDLASS_AGENT_HOME ?? path.join(s.WINDLASS_HOME, 'agent')),
    name: s.WINDLASS_AGENT_NAME,
    token: s.WINDLASS_AGENT_TOKEN,
    labels: s.WINDLASS_AGENT_LABELS,
    slots: s.WINDLASS_AGENT_SLOTS,
    spares: s.WINDLASS_AGENT_SPARES,
    stopMs: s.WINDLASS_AGENT_STOP_MS,
    parking: {
      ageMs: s.WINDLASS_AGENT_PARKED_MS,
      most: s.WINDLASS_AGENT_PARKED_MOST,
      memoryReserve: s.WINDLASS_AGENT_MEMORY_RESERVE,
      wakeMs: s.WINDLASS_AGENT_WAKE_MS,
    },
    bundleCacheBytes: s.WINDLASS_AGENT_BUNDLE_CACHE_BYTES,
    spool: {
      memoryBytes: s.WINDLASS_AGENT_SPOOL_MEMORY_BYTES,
      runBytes: s.WINDLASS_AGENT_SPOOL_RUN_BYTES,
      totalBytes: s.WINDLASS_AGENT_SPOOL_BYTES,
    },
    diskReserveBytes: s.WINDLASS_AGENT_DISK_RESERVE_MB && s.WINDLASS_AGENT_DISK_RESERVE_MB * 1024 * 1024,
    hooks: { folder: resolved(s.WINDLASS_AGENT_HOOKS), deadlineMs: s.WINDLASS_AGENT_HOOK_MS },
    health: s.WINDLASS_AGENT_HEALTH === undefined ? undefined : addressOf(s.WINDLASS_AGENT_HEALTH),
    isolation: hostIsolation(s),
    logFile: resolved(s.WINDLASS_AGENT_LOG_FILE),
    caFile: resolved(s.WINDLASS_AGENT_CA_FILE),
    environment,
    logLevel: s.WINDLASS_LOG_LEVEL,
    paces: PACES,
  }
}

const resolved = (file: string | undefined) => (file === undefined ? undefined : path.resolve(file))

function addressOf(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(':')
  const port = Number(text.slice(at + 1))
  if (port > 65_535) throw new AgentRefusal(EXIT.config, 'WINDLASS_AGENT_HEALTH: the port must be 65535 at most')
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port }
}

function refuseUnknown(names: string[]): void {
  const known = Object.keys(Settings.shape)
  for (const name of names) {
    if (known.includes(name)) continue
    const list = known.filter((each) => each.startsWith('WINDLASS_AGENT_')).join(', ')
    throw new AgentRefusal(
      EXIT.config,
      `${name} is no setting of the agent${didYouMean(name, known) || '.'} Known: ${list}.`,
    )
  }
}

function sentence(issue: z.core.$ZodIssue): string {
  return `${String(issue.path[0] ?? 'settings')}: ${issue.message}`
}

/** The environment of this process. */
export function environment(): Record<string, string | undefined> {
  return process.env
}

/** Once the settings are read, nothing in this process or below it has any business with a registration token. */
export function forgetToken(): void {
  delete process.env.WINDLASS_AGENT_TOKEN
}

/** What a pool may say for machines that say nothing themselves. */
const OF_POOL = {
  WINDLASS_AGENT_SLOTS: 'slots',
  WINDLASS_AGENT_PARKED_MS: 'parkedMs',
  WINDLASS_AGENT_STOP_MS: 'drainMs',
} as const

type PoolSaid = AgentSettings['pool']

/** Every setting as it counts at present, and who said so. The registration token is nobody's business. */
export function resolveSettings(config: Pick<AgentConfig, 'settings'>, pool?: PoolSaid): ResolvedSetting[] {
  return config.settings.map((setting) => {
    const ofPool = pool?.[OF_POOL[setting.name as keyof typeof OF_POOL]]
    if (setting.origin === 'default' && typeof ofPool === 'number') return { ...setting, value: ofPool, origin: 'pool' }
    return setting.name === 'WINDLASS_AGENT_TOKEN' && setting.value ? { ...setting, value: '…' } : setting
  })
}

/** What pool and machine say together. */
export interface InForce {
  slots: number
  parkedMs: number
  stopMs: number
}

/** Asked anew each time, for the pool may change it. */
export function watchInForce(config: Pick<AgentConfig, 'settings'>, pool: () => PoolSaid): () => InForce {
  let of: { pool: PoolSaid; found: InForce } | undefined
  return () => {
    const said = pool()
    if (!of || of.pool !== said) of = { pool: said, found: inForce(config, said) }
    return of.found
  }
}

function inForce(config: Pick<AgentConfig, 'settings'>, pool: PoolSaid): InForce {
  const found = new Map(resolveSettings(config, pool).map(({ name, value }) => [name, value as number]))
  const of = (name: keyof typeof OF_POOL) => found.get(name) ?? 0
  return {
    slots: of('WINDLASS_AGENT_SLOTS'),
    parkedMs: of('WINDLASS_AGENT_PARKED_MS'),
    stopMs: of('WINDLASS_AGENT_STOP_MS'),
  }
}
