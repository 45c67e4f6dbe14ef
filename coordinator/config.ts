import { z } from 'zod'
import { decodeStrings } from '@windlass/shared/ops/fill-route.ts'
import { bodyBytes, DEFAULT_SIZES, type Sizes } from './sizes.ts'
import { Settings } from './settings.ts'

export type Config = Sizes & {
  databaseUrl: string
  host: string
  port: number
  home: string
  logLevel: z.output<typeof Settings>['WINDLASS_LOG_LEVEL']
  databaseConnections: number
  heartbeatMs: number
  fenceMs: number
  leaseMs: number
  amnestyMs: number
  keyLifeMs: number
  offerMs: number
  sweepMs: number
  sweepRunsMs: number
  metricsToken: string | undefined
  /** Ticks of one schedule that are made up for after an outage. */
  maxCatchUp: number
  /** Undefined: see `littleRoom`. */
  diskReserveBytes: number | undefined
  /** Undefined: for ever. */
  maxRunsDays: number | undefined
  maxDeliveriesDays: number | undefined
  maxDeploysBytes: number
  maxOrgDeploysBytes: number
  limitIdentityPerMin: number
  limitOrgPerMin: number
  limitRefusedPerMin: number
  limitDeliveriesPerMin: number
  limitUnverifiedPerMin: number
  limitWaiting: number
  limitOrgWaiting: number
  trustedProxies: string[]
  accessLog: boolean
  baseUrl: string | undefined
  mcpHosts: string[]
  mcpOrigins: string[]
  secretKey: string | undefined
  secretKeyFile: string | undefined
  downloads: string | undefined
  strict: boolean
  /**
   * Interval in which polls and readers of logs look by themselves: the notice of something new may be lost. No
   * setting.
   */
  lookAgainMs: { polls: number; readers: number }
}

/** Names that other parts of Windlass read from the same environment. */
const OTHERS = /^WINDLASS_(API_KEY|SESSION|URL|ORG|PROFILE|CONFIG|AGENT_\w+|TEST_\w+|BENCH_\w+)$/

/** Settings of earlier versions, with what they are called now. */
const RENAMED: Readonly<Record<string, string>> = { WINDLASS_OUTPUT_BYTES: 'WINDLASS_MAX_OUTPUT_BYTES' }

/** Reads the environment once. An unknown `WINDLASS_*` is an error: a misspelt setting must not be silently ignored. */
export function readConfig(env: Record<string, string | undefined> = process.env): Config {
  const ours = Object.entries(env).filter(([name]) => name.startsWith('WINDLASS_') && !OTHERS.test(name))
  for (const [name] of ours)
    if (Object.hasOwn(RENAMED, name)) throw new Error(`${name} is called ${RENAMED[name]} now: rename the setting`)
  const parsed = Settings.safeParse(decodeStrings(Settings, Object.fromEntries(ours) as Record<string, string>))
  if (!parsed.success)
    throw new Error(`${z.prettifyError(parsed.error)}\nKnown settings: ${Object.keys(Settings.shape).join(', ')}`)
  const s = parsed.data
  if (s.WINDLASS_HEARTBEAT_MS * 2 > s.WINDLASS_FENCE_MS)
    throw new Error('WINDLASS_FENCE_MS must be at least twice WINDLASS_HEARTBEAT_MS')
  if (s.WINDLASS_FENCE_MS >= s.WINDLASS_LEASE_MS) {
    throw new Error(
      'WINDLASS_LEASE_MS must be greater than WINDLASS_FENCE_MS, or a run could be executed twice at once',
    )
  }
  if (s.WINDLASS_SECRET_KEY !== undefined && s.WINDLASS_SECRET_KEY_FILE !== undefined)
    throw new Error('WINDLASS_SECRET_KEY and WINDLASS_SECRET_KEY_FILE are two places for the same: leave one out')
  const deployBytes = bodyBytes('files', { ...DEFAULT_SIZES, maxBundleBytes: s.WINDLASS_MAX_BUNDLE_BYTES })
  for (const name of ['WINDLASS_MAX_ORG_DEPLOYS_BYTES', 'WINDLASS_MAX_DEPLOYS_BYTES'] as const)
    if (s[name] < deployBytes)
      throw new Error(`${name} must be at least ${deployBytes}, the largest body by WINDLASS_MAX_BUNDLE_BYTES`)
  return {
    databaseUrl: s.WINDLASS_DATABASE_URL,
    host: s.WINDLASS_HOST,
    port: s.WINDLASS_PORT,
    home: s.WINDLASS_HOME,
    logLevel: s.WINDLASS_LOG_LEVEL,
    databaseConnections: s.WINDLASS_DATABASE_CONNECTIONS,
    heartbeatMs: s.WINDLASS_HEARTBEAT_MS,
    fenceMs: s.WINDLASS_FENCE_MS,
    leaseMs: s.WINDLASS_LEASE_MS,
    amnestyMs: s.WINDLASS_AMNESTY_MS,
    keyLifeMs: s.WINDLASS_KEY_LIFE_MS,
    offerMs: s.WINDLASS_OFFER_MS,
    sweepMs: s.WINDLASS_SWEEP_MS,
    sweepRunsMs: s.WINDLASS_SWEEP_RUNS_MS,
    metricsToken: s.WINDLASS_METRICS_TOKEN,
    maxBodyBytes: s.WINDLASS_MAX_BODY_BYTES,
    maxBundleBytes: s.WINDLASS_MAX_BUNDLE_BYTES,
    maxInputBytes: s.WINDLASS_MAX_INPUT_BYTES,
    maxBatchBytes: s.WINDLASS_MAX_BATCH,
    maxOutputBytes: s.WINDLASS_MAX_OUTPUT_BYTES,
    maxAnswerBytes: s.WINDLASS_MAX_ANSWER_BYTES,
    maxDeliveryBytes: s.WINDLASS_MAX_DELIVERY,
    maxEventDataBytes: s.WINDLASS_MAX_EVENT_DATA_BYTES,
    maxCatchUp: s.WINDLASS_MAX_CATCH_UP,
    diskReserveBytes: s.WINDLASS_DISK_RESERVE_MB && s.WINDLASS_DISK_RESERVE_MB * 1024 * 1024,
    maxRunsDays: s.WINDLASS_MAX_RUNS_DAYS,
    maxDeliveriesDays: s.WINDLASS_MAX_DELIVERIES_DAYS,
    maxDeploysBytes: s.WINDLASS_MAX_DEPLOYS_BYTES,
    maxOrgDeploysBytes: s.WINDLASS_MAX_ORG_DEPLOYS_BYTES,
    limitIdentityPerMin: s.WINDLASS_LIMIT_IDENTITY_PER_MIN,
    limitOrgPerMin: s.WINDLASS_LIMIT_ORG_PER_MIN,
    limitRefusedPerMin: s.WINDLASS_LIMIT_REFUSED_PER_MIN,
    limitDeliveriesPerMin: s.WINDLASS_LIMIT_DELIVERIES_PER_MIN,
    limitUnverifiedPerMin: s.WINDLASS_LIMIT_UNVERIFIED_PER_MIN,
    limitWaiting: s.WINDLASS_LIMIT_WAITING,
    limitOrgWaiting: s.WINDLASS_LIMIT_ORG_WAITING,
    trustedProxies: s.WINDLASS_TRUSTED_PROXIES,
    accessLog: s.WINDLASS_ACCESS_LOG,
    baseUrl: s.WINDLASS_BASE_URL?.replace(/\/$/, ''),
    mcpHosts: s.WINDLASS_MCP_HOSTS,
    mcpOrigins: s.WINDLASS_MCP_ORIGINS,
    secretKey: s.WINDLASS_SECRET_KEY,
    secretKeyFile: s.WINDLASS_SECRET_KEY_FILE,
    downloads: s.WINDLASS_DOWNLOADS,
    strict: s.WINDLASS_STRICT,
    lookAgainMs: { polls: 5000, readers: 3000 },
  }
}

/** What systemd says to a service of type `notify`; undefined: it is not our supervisor. */
interface Systemd {
  /** Longest silence that systemd allows; null: it does not watch. */
  watchdogMs: number | null
}

export function readSystemd(env: Record<string, string | undefined> = process.env): Systemd | undefined {
  if (!env.NOTIFY_SOCKET) return undefined
  const watchdogMs = Number(env.WATCHDOG_USEC) / 1000
  return { watchdogMs: watchdogMs > 0 ? watchdogMs : null }
}
