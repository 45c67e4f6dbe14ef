import { z } from 'zod'
import { Slug } from '../ids.ts'
import { LAST_MOMENT } from '../time.ts'
import { Connection, EnvironmentName, Name, resolveWebhook, Webhook } from './descriptor-inbound.ts'
import { duration } from './duration.ts'
import { CatchUp, DEFAULT_CATCH_UP_WINDOW_MS, Overlap } from './late-rules.ts'
import { Label } from './label.ts'
import {
  ConcurrencyFile,
  DebounceFile,
  resolveConcurrency,
  resolveDebounce,
  resolveThrottle,
  ThrottleFile,
} from './load.ts'
import { MOST_CRON_CHARS, MOST_SCHEDULE_INPUT_BYTES } from './schedule.ts'
import { strict } from './strict.ts'

/** The file among a workflow's files that holds its descriptor. */
export const DESCRIPTOR_FILE = 'workflow.jsonc'

const DEFAULT_TIMEOUT_MS = 3_600_000
const DEFAULT_CANCEL_GRACE_MS = 10_000
const DEFAULT_RETRY_DELAY_MS = 10_000
const DEFAULT_MAX_RETRY_DELAY_MS = 600_000

/** What the JSON Schema for editors says where a refinement speaks here: exactly one of these keys. */
const oneOf = (...keys: string[]) => ({ oneOf: keys.map((key) => ({ required: [key] })) })

const ErrorRetries = strict({
  max: z.int().min(0).max(100).describe('How many times a run that threw is tried again.'),
  delay: duration({ min: '0s', max: '1d' }).optional().describe('Pause before the first retry. Default 10s.'),
  factor: z.number().min(1).max(10).default(2).describe('By how much each further pause is longer.'),
  maxDelay: duration({ min: '0s', max: '7d' }).optional().describe('The longest pause. Default 10m.'),
})

/** Default of `retries.fence`, also for descriptors that were deployed before it existed. */
export const FENCE_RETRIES = 20

const Retries = strict({
  crash: z
    .int()
    .min(0)
    .max(100)
    .default(3)
    .describe('How many times a run whose process or machine was lost starts again from the top.'),
  fence: z
    .int()
    .min(0)
    .max(1000)
    .default(FENCE_RETRIES)
    .describe('How many times a run starts again from the top because its agent could not reach the coordinator.'),
  error: z
    .union([z.int().min(0).max(100), ErrorRetries], {
      error: 'must be a number of retries or { max, delay, factor, maxDelay }',
    })
    .default(0)
    .meta({
      description: 'How many times a run that threw is tried again; 0 fails it at once.',
      examples: [3, { max: 3, delay: '10s', factor: 2, maxDelay: '10m' }],
    }),
  onCrash: z
    .enum(['keep', 'fresh'])
    .default('keep')
    .describe('Whether a restart keeps the results of finished steps or forgets them.'),
  onLost: z
    .enum(['restart', 'replay', 'hold'])
    .default('restart')
    .describe('What becomes of a waiting run whose process is lost.'),
})

const ActiveTimeout = duration({ min: '1s', max: '7d' })
const Timeouts = strict({
  active: ActiveTimeout.optional().describe('Longest time that an attempt may execute, waiting left out. Default 1h.'),
  wall: duration({ min: '1s', max: '366d' })
    .optional()
    .describe('Longest time from the creation of a run to its end, waiting included. Default: no limit.'),
  queue: duration({ min: '1s', max: '366d' })
    .optional()
    .describe('Longest time that a new run may wait in the queue for a runner or for concurrency. Default: no limit.'),
})

const Moment = z.union([z.iso.datetime({ offset: true }), z.int().positive().max(LAST_MOMENT)], {
  error: 'must be a time such as "2027-01-31T09:00:00Z"',
})

const Schedule = strict({
  name: Name.optional().describe('What people read.'),
  cron: z
    .string()
    .trim()
    .max(MOST_CRON_CHARS)
    .regex(/^\S+(\s+\S+){4}$/, { error: 'must have five fields: minute hour day month weekday' })
    .optional()
    .meta({ description: 'When, in five fields: minute hour day month weekday.', examples: ['0 9 * * 1-5'] }),
  rate: duration({ min: '10s', max: '366d' })
    .optional()
    .meta({ description: 'How often.', examples: ['15m'] }),
  at: Moment.optional().meta({
    description: 'Once, at this time; or milliseconds since the Unix epoch.',
    examples: ['2027-01-31T09:00:00Z'],
  }),
  timezone: z
    .string()
    .max(100)
    .optional()
    .meta({ description: 'Time zone of `cron`. Default: UTC.', examples: ['Europe/Zurich'] }),
  input: z.json().optional().describe('What the runs are called with: any JSON.'),
  environment: EnvironmentName.optional(),
  enabled: z.boolean().default(true).describe('Whether it starts runs.'),
  anchorAt: Moment.optional().meta({
    description: 'Ticks of a rate lie whole steps behind this time. Default: when it is first deployed.',
    examples: ['2027-01-01T00:00:00Z'],
  }),
  jitter: duration({ min: '0s', max: '1h' })
    .optional()
    .meta({ description: 'By how much each tick may be put off. Default 0s.', examples: ['30s'] }),
  catchUp: CatchUp.default('last'),
  catchUpWindow: duration({ min: '0s', max: '7d' })
    .optional()
    .meta({ description: 'What was missed longer ago is not caught up. Default 1h.', examples: ['6h'] }),
  overlap: Overlap.default('allow'),
})
  .refine((s) => [s.cron, s.rate, s.at].filter((v) => v !== undefined).length === 1, {
    error: 'needs exactly one of `cron`, `rate`, `at`',
  })
  .refine((s) => s.timezone === undefined || s.cron !== undefined, {
    error: 'goes with `cron` only',
    path: ['timezone'],
  })
  .refine((s) => s.anchorAt === undefined || s.rate !== undefined, {
    error: 'goes with `rate` only',
    path: ['anchorAt'],
  })
  .refine(({ input = null }) => bytesOf(input) <= MOST_SCHEDULE_INPUT_BYTES, {
    error: 'has more than 64 KiB as JSON; let the program fetch what is larger',
    path: ['input'],
  })
  .meta({ ...oneOf('cron', 'rate', 'at'), dependentRequired: { timezone: ['cron'], anchorAt: ['rate'] } })

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

const Notification = strict({
  on: z
    .array(z.enum(['completed', 'failed', 'cancelled', 'budget']))
    .min(1)
    .max(4)
    .default(['failed'])
    .describe('Which ends of a run are told, and whether a breached budget is.'),
  email: z
    .union([z.email(), z.array(z.email()).min(1).max(20)], { error: 'must be an address or a list of addresses' })
    .optional()
    .meta({ description: 'Who gets a mail: an address, or a list of them.', examples: ['ops@example.com'] }),
  webhook: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .optional()
    .meta({ description: 'Where to post it.', pattern: '^https?://', examples: ['https://example.com/hook'] }),
})
  .refine((n) => (n.email === undefined) !== (n.webhook === undefined), {
    error: 'needs exactly one of `email`, `webhook`',
  })
  .meta(oneOf('email', 'webhook'))

const Budget = strict({
  tokens: z.int().positive().optional().describe('Tokens that one run may use.'),
  usd: z.number().positive().max(1_000_000).optional().describe('Dollars that one run may cost.'),
  onBreach: z.enum(['notify', 'cancel']).default('notify').describe('What happens to a run that goes beyond it.'),
})
  .refine((b) => b.tokens !== undefined || b.usd !== undefined, { error: 'needs `tokens`, `usd` or both' })
  .meta({ anyOf: [{ required: ['tokens'] }, { required: ['usd'] }] })

const Labels = z
  .array(Label)
  .max(20)
  .refine((labels) => new Set(labels).size === labels.length, { error: 'must not name a label twice' })
  .meta({ uniqueItems: true })

/** `workflow.jsonc` as people write it. */
export const DescriptorFile = strict({
  $schema: z.string().optional().describe('Address of the schema by which an editor completes and checks this file.'),
  slug: Slug.meta({ description: 'Name of the workflow in paths and commands.', examples: ['ship-release'] }),
  name: Name.optional().describe('What people read. Default: the slug.'),
  description: z.string().max(2_000).default('').describe('What it does, in a sentence or two.'),
  entry: z
    .string()
    .min(1)
    .max(500)
    // esbuild takes it for a pattern, and has no single file to write then.
    .regex(/^[^*]*$/, { error: 'must be the path of a file, without `*`' })
    .default('index.ts')
    .describe('File that exports `run`.'),
  pool: Slug.default('default').describe('Runner pool that executes the runs.'),
  labels: Labels.default([]).meta({
    description: 'Labels that a runner must carry to execute the runs.',
    examples: [['linux', 'gpu']],
  }),
  slots: z
    .int()
    .min(1)
    .max(1024)
    .default(1)
    .describe('Slots of its runner that a run occupies while it executes: more for a program that needs much.'),
  timeout: z
    .union([ActiveTimeout, Timeouts])
    .optional()
    .meta({
      description: 'Longest time that a run may execute, or { active, wall, queue }. Default 1h.',
      examples: ['10m', { active: '10m', wall: '7d', queue: '1h' }],
    }),
  cancelGrace: duration({ min: '0s', max: '5m' })
    .optional()
    .describe('Time for cleanup after a cancel or timeout. Default 10s.'),
  retries: Retries.prefault({}).describe('How often a run is tried again that was lost or that threw.'),
  concurrency: ConcurrencyFile.optional().meta({
    description: 'How many runs may be under way at once, or a list of limits that all hold. Default: no limit.',
    examples: [1, { limit: 2, key: 'input.customerId' }, [{ limit: 10 }, { limit: 1, key: 'input.customerId' }]],
  }),
  throttle: ThrottleFile.optional().meta({
    description: 'How many runs may enter the queue within a time; what is more is delayed. Default: no limit.',
    examples: [{ limit: 10, per: '1m', key: 'input.customerId' }],
  }),
  debounce: DebounceFile.optional().meta({
    description: 'Makes calls that follow one another closely into one run, with the input of the last.',
    examples: [{ wait: '30s', key: 'input.documentId' }],
  }),
  schedules: z.array(Schedule).max(100).default([]).describe('When runs start by themselves.'),
  notifications: z.array(Notification).max(50).default([]).describe('Who is told how runs end.'),
  budget: Budget.optional().describe('What one run may use of tokens and money.'),
  webhook: Webhook.optional().describe('How deliveries at the webhook of the workflow start runs.'),
  connections: z.array(Connection).max(50).default([]).describe('Deliveries of other systems that start runs.'),
  workspace: strict({ persist: z.boolean().default(false).describe('Whether they outlive it.') })
    .prefault({})
    .describe('Whether files in the workspace outlive the run.'),
  process: z
    .enum(['fresh', 'reuse'])
    .default('fresh')
    .describe('A new process for each run, or one that serves several in turn.'),
})

/** The descriptor resolved: defaults in, durations as `…Ms`, short forms written out. */
export const Descriptor = DescriptorFile.transform((file) => {
  const { $schema: _, timeout, cancelGrace, ...rest } = file
  return {
    ...rest,
    name: file.name ?? file.slug,
    ...timeouts(timeout),
    cancelGraceMs: cancelGrace ?? DEFAULT_CANCEL_GRACE_MS,
    retries: { ...file.retries, error: errorRetries(file.retries.error) },
    concurrency: resolveConcurrency(file.concurrency),
    throttle: resolveThrottle(file.throttle),
    debounce: resolveDebounce(file.debounce),
    schedules: file.schedules.map(resolveSchedule),
    notifications: file.notifications.map(resolveNotification),
    budget: file.budget ? resolveBudget(file.budget) : null,
    webhook: file.webhook ? resolveWebhook(file.webhook) : null,
    connections: file.connections.map((c) => ({ ...c, environment: c.environment ?? null })),
  }
})
export type Descriptor = z.output<typeof Descriptor>

function errorRetries(given: number | z.output<typeof ErrorRetries>) {
  const { max, factor, delay, maxDelay } = typeof given === 'number' ? { max: given, factor: 2 } : given
  const delayMs = delay ?? DEFAULT_RETRY_DELAY_MS
  return { max, factor, delayMs, maxDelayMs: Math.max(delayMs, maxDelay ?? DEFAULT_MAX_RETRY_DELAY_MS) }
}

function timeouts(given: number | z.output<typeof Timeouts> | undefined) {
  const { active, wall, queue } = typeof given === 'number' ? { active: given } : { ...given }
  return {
    timeoutMs: active ?? Math.min(DEFAULT_TIMEOUT_MS, wall ?? DEFAULT_TIMEOUT_MS),
    wallTimeoutMs: wall ?? null,
    queueTimeoutMs: queue ?? null,
  }
}

const momentOf = (given: string | number | undefined) =>
  given === undefined ? null : typeof given === 'string' ? Date.parse(given) : given

function resolveSchedule(schedule: z.output<typeof Schedule>) {
  const { cron, rate, at, timezone, anchorAt, jitter = 0, catchUpWindow, ...rest } = schedule
  const when =
    cron !== undefined
      ? { kind: 'cron' as const, cron, timezone: timezone ?? 'UTC' }
      : rate !== undefined
        ? { kind: 'rate' as const, rateMs: rate, anchorAt: momentOf(anchorAt) }
        : { kind: 'at' as const, at: momentOf(at) ?? 0 }
  const late = { jitterMs: jitter, catchUpWindowMs: catchUpWindow ?? DEFAULT_CATCH_UP_WINDOW_MS }
  return { ...rest, ...late, name: rest.name ?? null, environment: rest.environment ?? null, when }
}

function resolveNotification({ on, email, webhook }: z.output<typeof Notification>) {
  const to = webhook === undefined ? { email: [email ?? []].flat() } : { webhook }
  return { on: [...new Set(on)], to }
}

function resolveBudget({ tokens, usd, onBreach }: z.output<typeof Budget>) {
  // Rounded up, so that a tiny budget never becomes none; but not where 4.03 dollars are 4030000.0000000005 micros.
  const micros = (dollars: number) => Math.max(1, Math.ceil(Number((dollars * 1_000_000).toFixed(3))))
  return { tokens: tokens ?? null, costMicros: usd === undefined ? null : micros(usd), onBreach }
}
