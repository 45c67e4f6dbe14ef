import os from 'node:os'
import { z } from 'zod'
import { MOST_PARKED } from '@windlass/shared/wire/agent.ts'
import { ISOLATION_SETTINGS } from './isolation/settings.ts'

const MIB = 1024 * 1024
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** All settings of an agent, by their names in the environment. A default that depends on the machine says in words what it is. */
export const Settings = z.strictObject({
  WINDLASS_URL: z
    .url({ protocol: /^https?$/, error: 'must be the http(s) address of a coordinator' })
    .meta({ description: 'Address of the coordinator.' }),
  WINDLASS_AGENT_ALLOW_HTTP: z.boolean().default(false).meta({
    description: 'Speak plain http with a coordinator on another machine, where it can be read on the way.',
  }),
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
      otherwise: '`slots` of the pool, else 2 × cores, at least 4',
    }),
  WINDLASS_AGENT_SPARES: z
    .int()
    .min(0)
    .max(64)
    .optional()
    .meta({ description: 'Booted processes kept in reserve.', otherwise: '`1`' }),
  WINDLASS_AGENT_STOP_MS: z.int().min(0).max(86_400_000).default(600_000).meta({
    description: 'How long running programs may go on after SIGTERM.',
    otherwise: '`drainMs` of the pool, else `600000`',
  }),
  WINDLASS_AGENT_PARKED_MS: z.int().min(0).max(LONGEST_TIMER_MS).default(600_000).meta({
    description: 'How long the process of a run that only waits is kept; then its next one replays. 0: not at all.',
    otherwise: '`parkedMs` of the pool, else `600000`',
  }),
  WINDLASS_AGENT_PARKED_MOST: z
    .int()
    .min(0)
    .max(MOST_PARKED)
    .default(() => Math.min(MOST_PARKED, Math.max(8, Math.floor(os.totalmem() / 4 / (64 * MIB)))))
    .meta({
      description: `How many such processes are kept; ${MOST_PARKED} at most.`,
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
    .meta({
      description:
        'With so much unacknowledged on disk a run is paused, never cut; while it is acknowledged, with 8,192 entries.',
    }),
  WINDLASS_AGENT_SPOOL_BYTES: z
    .int()
    .min(MIB)
    .default(1024 * MIB)
    .meta({
      description:
        'With so much unacknowledged on the disk in all, every run is paused. One that has been paused for half a minute goes on, and its log has a gap that says how much is missing.',
    }),
  WINDLASS_AGENT_CONFIG: z.string().min(1).optional().meta({
    description: 'File with settings, in the form of `.env`. What the environment says counts more. `none`: no file.',
    otherwise: '`/etc/windlass-agent/agent.env` or `~/.config/windlass-agent/agent.env`, where there is one',
  }),
  WINDLASS_AGENT_DISK_RESERVE_MB: z.int().min(0).max(1_048_576).optional().meta({
    description: 'With less free on the disk of its state, or with less than 1 % of the inodes, it takes no work.',
    otherwise: '512, at most a tenth of the disk',
  }),
  ...ISOLATION_SETTINGS,
  WINDLASS_AGENT_HOOKS: z.string().min(1).optional().meta({
    description: "Folder with the host owner's programs `pre-claim`, `pre-run` and `post-run`.",
  }),
  WINDLASS_AGENT_HOOK_MS: z
    .int()
    .min(100)
    .max(600_000)
    .default(30_000)
    .meta({ description: 'How long each of them may take before it is killed.' }),
  WINDLASS_AGENT_HEALTH: z
    .string()
    .regex(/^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/, 'must be host:port, such as 127.0.0.1:9464')
    .optional()
    .meta({ description: 'Address at which it answers `/livez`, `/readyz` and `/metrics`.', otherwise: 'off' }),
  WINDLASS_AGENT_LOG_FILE: z.string().min(1).optional().meta({
    description: 'File for its log, kept in three pieces of 10 MiB.',
    otherwise: 'stderr',
  }),
  WINDLASS_AGENT_CA_FILE: z.string().min(1).optional().meta({
    description: 'Certificates (PEM) that are trusted besides those of Node. There is no way to trust any.',
  }),
})
