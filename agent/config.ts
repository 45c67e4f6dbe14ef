import os from 'node:os'
import path from 'node:path'
import { z } from 'zod'
import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { decodeStrings } from '@windlass/shared/ops/place.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { programEnvironment } from './run/environment.ts'

const MIB = 1024 * 1024
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** All settings of an agent, by their names in the environment. A default that depends on the machine says in words what it is. */
export const Settings = z.strictObject({
  WINDLASS_URL: z
    .url({ protocol: /^https?$/, error: 'must be the http(s) address of a coordinator' })
    .meta({ description: 'Address of the coordinator.' }),
  WINDLASS_HOME: z
    .string()
    .min(1)
    .default('.windlass')
    .meta({ description: 'Folder in which WINDLASS_AGENT_HOME lies by default.' }),
  WINDLASS_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .meta({ description: 'The least that is logged.' }),
  WINDLASS_AGENT_HOME: z.string().min(1).optional().meta({
    description: 'Its state: key, spool, bundles, workspaces.',
    otherwise: '`agent` in WINDLASS_HOME',
  }),
  WINDLASS_AGENT_NAME: z
    .string()
    .min(1)
    .max(100)
    .default(() => os.hostname().slice(0, 100) || 'agent')
    .meta({ description: 'How the agent is listed.', otherwise: "the host's name" }),
  WINDLASS_AGENT_TOKEN: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: 'Registration token, for the first start only.' }),
  WINDLASS_AGENT_LABELS: z
    .array(z.string().min(1).max(64))
    .max(50)
    .default([])
    .meta({ description: 'Labels that workflows may ask for.' }),
  WINDLASS_AGENT_SLOTS: z
    .int()
    .min(1)
    .max(1024)
    .default(() => Math.max(4, os.availableParallelism() * 2))
    .meta({
      description: 'Runs that execute at once; those that only wait need none.',
      otherwise: '2 × cores, at least 4',
    }),
  WINDLASS_AGENT_SPARES: z
    .int()
    .min(0)
    .max(64)
    .optional()
    .meta({ description: 'Booted processes kept in reserve.', otherwise: '`1`' }),
  WINDLASS_AGENT_STOP_MS: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(10_000)
    .meta({ description: 'How long running programs may go on after SIGTERM.' }),
  WINDLASS_AGENT_PARKED_MS: z.int().min(0).max(LONGEST_TIMER_MS).default(600_000).meta({
    description: 'How long the process of a run that only waits is kept; then its next one replays. 0: not at all.',
  }),
  WINDLASS_AGENT_PARKED_MOST: z
    .int()
    .min(0)
    .max(100_000)
    .default(() => Math.max(8, Math.floor(os.totalmem() / 4 / (64 * MIB))))
    .meta({
      description: 'How many such processes are kept.',
      otherwise: 'a quarter of the memory ÷ 64 MiB, at least 8',
    }),
  WINDLASS_AGENT_MEMORY_RESERVE: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .meta({ description: 'With less than this share of the memory free, the oldest of them go.' }),
  WINDLASS_AGENT_WAKE_MS: z.int().min(0).max(LONGEST_TIMER_MS).default(5_000).meta({
    description: 'How long one whose wait is over may wait for a slot here before another runner may have the run.',
  }),
  WINDLASS_AGENT_BUNDLE_CACHE_BYTES: z
    .int()
    .min(MIB)
    .default(2048 * MIB)
    .meta({ description: 'Unpacked bundles kept.' }),
  WINDLASS_AGENT_SPOOL_MEMORY_BYTES: z
    .int()
    .min(64 * 1024)
    .default(8 * MIB)
    .meta({ description: 'Unacknowledged events kept in memory; what is beyond is read back from disk.' }),
  WINDLASS_AGENT_SPOOL_RUN_BYTES: z
    .int()
    .min(64 * 1024)
    .default(64 * MIB)
    .meta({ description: 'A run with so much unacknowledged is paused, never cut.' }),
  WINDLASS_AGENT_SPOOL_BYTES: z
    .int()
    .min(MIB)
    .default(1024 * MIB)
    .meta({ description: 'With so much unacknowledged in all, every run is paused.' }),
})

export interface AgentConfig {
  /** Address of the coordinator. */
  url: string
  /** Folder of keys, spool, bundles and workspaces. */
  home: string
  name: string
  /** Needed for the first start only. */
  token: string | undefined
  labels: string[]
  /** How many runs at once. */
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
  /** All that programs inherit. */
  environment: Record<string, string>
  logLevel: z.output<typeof Settings>['WINDLASS_LOG_LEVEL']
}

/** Read by the agent; other `WINDLASS_*` names in the same environment belong to other parts. */
const OURS = /^WINDLASS_(URL$|HOME$|LOG_LEVEL$|AGENT_)/

const NEEDS_URL = 'WINDLASS_URL is missing: set it to the address of the coordinator, such as http://localhost:8787'

/** Reads the environment once. A misspelt `WINDLASS_AGENT_*` must not be silently ignored, so it is refused. */
export function readConfig(env: Record<string, string | undefined>): AgentConfig {
  const ours: Record<string, string> = {}
  for (const [name, value] of Object.entries(env))
    if (OURS.test(name) && value !== undefined && value !== '') ours[name] = value
  refuseUnknown(Object.keys(ours))
  if (!ours.WINDLASS_URL) throw new AgentRefusal(EXIT.config, NEEDS_URL)
  const parsed = Settings.safeParse(decodeStrings(Settings, ours))
  if (!parsed.success) throw new AgentRefusal(EXIT.config, parsed.error.issues.map(sentence).join('\n'))
  return toConfig(parsed.data, programEnvironment(env))
}

function toConfig(s: z.output<typeof Settings>, environment: Record<string, string>): AgentConfig {
  return {
    url: s.WINDLASS_URL.replace(/\/+$/, ''),
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
    environment,
    logLevel: s.WINDLASS_LOG_LEVEL,
  }
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
