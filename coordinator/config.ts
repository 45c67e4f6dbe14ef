import { isIP } from 'node:net'
import { z } from 'zod'
import { decodeStrings } from '@windlass/shared/ops/place.ts'

const SECOND = 1000
const MIB = 1024 * 1024

/** 32 bytes in base64, of which the last character carries four bits only. */
export const SECRET_KEY = /^[A-Za-z0-9+/_-]{42}[AEIMQUYcgkosw048]=?$/

/** All settings of a coordinator, by their names in the environment. Lengths of time are in milliseconds. */
export const Settings = z.strictObject({
  WINDLASS_DATABASE_URL: z.string().min(1).meta({
    description: 'PostgreSQL 15 or newer.',
    otherwise: 'required; `npm start` brings its own',
  }),
  WINDLASS_HOST: z.string().default('127.0.0.1').meta({ description: 'Address to listen on.' }),
  WINDLASS_PORT: z
    .int()
    .min(0)
    .max(65_535)
    .default(8787)
    .meta({ description: 'Port to listen on; 0 takes a free one.' }),
  WINDLASS_HOME: z.string().default('.windlass').meta({
    description: 'Folder for objects, which all coordinators of a database share, and, embedded, the database.',
  }),
  WINDLASS_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .meta({ description: 'The least that is logged.' }),
  WINDLASS_DATABASE_CONNECTIONS: z.int().min(4).max(200).default(12).meta({
    description: 'Connections of one coordinator for reads and changes; runs, jobs, limits and notices have 17 more.',
  }),
  WINDLASS_HEARTBEAT_MS: z
    .int()
    .min(50)
    .default(10 * SECOND)
    .meta({ description: 'How often an agent renews its leases.' }),
  WINDLASS_FENCE_MS: z
    .int()
    .min(100)
    .default(50 * SECOND)
    .meta({ description: 'After so long without an answer an agent kills what it runs.' }),
  WINDLASS_LEASE_MS: z
    .int()
    .min(200)
    .default(75 * SECOND)
    .meta({ description: 'After so long without a heartbeat runs go to another agent.' }),
  WINDLASS_AMNESTY_MS: z
    .int()
    .min(0)
    .default(300 * SECOND)
    .meta({
      description:
        'After an outage or a start, leases last for 90 s at least. When such events follow one another, ' +
        'this is given for so long altogether.',
    }),
  WINDLASS_KEY_LIFE_MS: z
    .int()
    .min(200)
    .default(24 * 3600 * SECOND)
    .meta({ description: 'An agent makes itself a new key when three quarters of this are over.' }),
  WINDLASS_OFFER_MS: z
    .int()
    .min(100)
    .default(15 * SECOND)
    .meta({ description: 'An offer that is not accepted by then goes back into the queue.' }),
  WINDLASS_SWEEP_MS: z
    .int()
    .min(50)
    .default(5 * SECOND)
    .meta({ description: 'How often lost offers and leases are looked for.' }),
  WINDLASS_SWEEP_RUNS_MS: z
    .int()
    .min(50)
    .default(60 * SECOND)
    .meta({ description: 'How often unfinished runs are looked through for those that nobody would continue.' }),
  WINDLASS_METRICS_TOKEN: z
    .string()
    .min(16, 'must have 16 characters at least')
    .regex(/^\S+$/, 'must have no spaces: it is sent as a bearer token')
    .optional()
    .meta({
      description:
        'Opens /metrics to whoever sends it as a bearer token; else it is for this machine, if that alone is served.',
    }),
  WINDLASS_OUTPUT_BYTES: z
    .int()
    .min(1024)
    // An agent sends the output in one frame, in which quotes double it; the socket takes 16 MiB.
    .max(4 * 1024 * 1024)
    .default(1024 * 1024)
    .meta({ description: 'The most that a run may return, as JSON.' }),
  WINDLASS_MAX_DEPLOYS_BYTES: z
    .int()
    .min(64 * MIB)
    .default(192 * MIB)
    .meta({
      description:
        'Files of deploys that one coordinator has in memory at once, all together; more is told to come back. ' +
        'Bodies of requests above 64 KiB have as much besides, and so have reads of files.',
    }),
  WINDLASS_MAX_ORG_DEPLOYS_BYTES: z
    .int()
    .min(64 * MIB)
    .default(96 * MIB)
    .meta({ description: 'The same for one org.' }),
  WINDLASS_LIMIT_IDENTITY_PER_MIN: z.int().min(0).max(10_000_000).default(600).meta({
    description: 'Requests that one key or session may send in a minute, over all coordinators; 0: no limit.',
  }),
  WINDLASS_LIMIT_ORG_PER_MIN: z
    .int()
    .min(0)
    .max(10_000_000)
    .default(6000)
    .meta({ description: 'The same for all keys and sessions of an org together.' }),
  WINDLASS_LIMIT_REFUSED_PER_MIN: z.int().min(0).max(10_000_000).default(300).meta({
    description: 'Credentials from one address (IPv6: /64) that may be refused in a minute; 0: no limit.',
  }),
  WINDLASS_LIMIT_WAITING: z.int().min(0).max(1_000_000).default(200).meta({
    description:
      'Streams, waiting requests and MCP calls that wait which a key or session may have open here; 0: no limit.',
  }),
  WINDLASS_LIMIT_ORG_WAITING: z.int().min(0).max(1_000_000).default(600).meta({
    description: 'The same for all keys and sessions of an org together.',
  }),
  WINDLASS_TRUSTED_PROXIES: z
    .array(z.string().refine(isNetwork, 'must be addresses or networks, such as 10.0.0.5 or 10.0.0.0/8 or fd00::/8'))
    .default([])
    .meta({
      description:
        'Addresses or networks of proxies whose `X-Forwarded-For`, `-Proto` and `-Host` count; separated by commas.',
    }),
  WINDLASS_ACCESS_LOG: z.boolean().default(false).meta({
    description: 'Log a line for each request: method, route, status, bytes, time, address, who asked.',
  }),
  WINDLASS_BASE_URL: z
    .string()
    .refine(isBase, 'must be an address without a path, such as https://windlass.example.com')
    .optional()
    .meta({ description: 'The address by which others reach it, when a proxy stands in front.' }),
  WINDLASS_MCP_HOSTS: z
    .array(z.string().regex(/^[a-z0-9.-]+$|^\[[0-9a-f:.]+\]$/, 'must be names of hosts without ports, in lower case'))
    .default([])
    .meta({ description: 'Further host names under which /mcp/v1 is reached; separated by commas.' }),
  WINDLASS_MCP_ORIGINS: z
    .array(
      z.string().refine((origin) => URL.canParse(origin) && new URL(origin).origin === origin, {
        error: 'must be origins such as https://inspector.example.com',
      }),
    )
    .default([])
    .meta({ description: 'Further origins whose pages may call /mcp/v1; separated by commas.' }),
  WINDLASS_SECRET_KEY: z
    .string()
    // The keys themselves are in no sentence.
    .refine(
      (text) => text.split(',').every((key) => SECRET_KEY.test(key.trim())),
      'must be a key of 32 bytes in base64, as `openssl rand -base64 32` makes them, or several with commas',
    )
    .optional()
    .meta({ description: 'Seals secrets in the database. Several, separated by commas: the first seals, all open.' }),
  WINDLASS_SECRET_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'The same as a file, a key a line; read again when it changes. `npm start` makes one.' }),
  WINDLASS_DOWNLOADS: z.string().min(1).optional().meta({
    description: 'Folder with archives of the agent for further platforms, handed out by /downloads and /install.sh.',
  }),
  WINDLASS_STRICT: z
    .boolean()
    .default(false)
    .meta({ description: 'Check every answer against its schema; for tests.' }),
})

export type Config = {
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
  outputBytes: number
  maxDeploysBytes: number
  maxOrgDeploysBytes: number
  limitIdentityPerMin: number
  limitOrgPerMin: number
  limitRefusedPerMin: number
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

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  if (bits < 0 || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
}

function isBase(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, origin } = new URL(text)
  return /^https?:$/.test(protocol) && text.replace(/\/$/, '') === origin
}

/** Names that other parts of Windlass read from the same environment. */
const OTHERS = /^WINDLASS_(API_KEY|SESSION|URL|ORG|PROFILE|CONFIG|AGENT_\w+|TEST_\w+|BENCH_\w+)$/

/** Reads the environment once. An unknown `WINDLASS_*` is an error: a misspelt setting must not be silently ignored. */
export function readConfig(env: Record<string, string | undefined> = process.env): Config {
  const ours = Object.entries(env).filter(([name]) => name.startsWith('WINDLASS_') && !OTHERS.test(name))
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
    outputBytes: s.WINDLASS_OUTPUT_BYTES,
    maxDeploysBytes: s.WINDLASS_MAX_DEPLOYS_BYTES,
    maxOrgDeploysBytes: s.WINDLASS_MAX_ORG_DEPLOYS_BYTES,
    limitIdentityPerMin: s.WINDLASS_LIMIT_IDENTITY_PER_MIN,
    limitOrgPerMin: s.WINDLASS_LIMIT_ORG_PER_MIN,
    limitRefusedPerMin: s.WINDLASS_LIMIT_REFUSED_PER_MIN,
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
