import { z } from 'zod'
import { decodeStrings } from '@windlass/shared/ops/place.ts'

const SECOND = 1000

/** All settings of a coordinator, by their names in the environment. Lengths of time are in milliseconds. */
const Settings = z.strictObject({
  WINDLASS_DATABASE_URL: z.string().min(1).meta({ description: 'PostgreSQL 15 or newer.' }),
  WINDLASS_HOST: z.string().default('127.0.0.1').meta({ description: 'Address to listen on.' }),
  WINDLASS_PORT: z
    .int()
    .min(0)
    .max(65_535)
    .default(8787)
    .meta({ description: 'Port to listen on; 0 takes a free one.' }),
  WINDLASS_HOME: z
    .string()
    .default('.windlass')
    .meta({ description: 'Folder for objects and, embedded, the database.' }),
  WINDLASS_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  WINDLASS_DATABASE_CONNECTIONS: z.int().min(4).max(200).default(12),
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
    .meta({ description: 'So long after its start a coordinator takes no run away.' }),
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
    .meta({ description: 'Opens /metrics to other machines that send it as a bearer token.' }),
  WINDLASS_OUTPUT_BYTES: z
    .int()
    .min(1024)
    // An agent sends the output in one frame, in which quotes double it; the socket takes 16 MiB.
    .max(4 * 1024 * 1024)
    .default(1024 * 1024)
    .meta({ description: 'The most that a run may return, as JSON.' }),
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
  offerMs: number
  sweepMs: number
  sweepRunsMs: number
  metricsToken: string | undefined
  outputBytes: number
  strict: boolean
}

/** Names that other parts of Windlass read from the same environment. */
const OTHERS = /^WINDLASS_(API_KEY|URL|ORG|AGENT_\w+|TEST_\w+|BENCH_\w+)$/

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
    offerMs: s.WINDLASS_OFFER_MS,
    sweepMs: s.WINDLASS_SWEEP_MS,
    sweepRunsMs: s.WINDLASS_SWEEP_RUNS_MS,
    metricsToken: s.WINDLASS_METRICS_TOKEN,
    outputBytes: s.WINDLASS_OUTPUT_BYTES,
    strict: s.WINDLASS_STRICT,
  }
}
