import type { z } from 'zod'
import type { DeliverySummary } from '../model/delivery.ts'
import type { Org } from '../model/org.ts'
import type { Run } from '../model/run.ts'

// One story for all examples: the org `acme` pays an invoice with the workflow `approval` on 20 November 2026 at
// 09:00 UTC. Ids carry the times of their creation, as real ones do.

export const BASE_URL = 'https://windlass.example.com'

export const NINE = 1_795_165_200_000
export const DAY_MS = 86_400_000

export const IDS = {
  org: 'org_01m0mb5hm0kzqw2gfp18dfspgv',
  pool: 'pool_01m0mb5hm0zwfqewestvkgfbh4',
  workflow: 'wf_01m5ev0nm0fxj3nmbpjhb06y3b',
  hello: 'wf_01m5hddcm05ze6vvjd49ercxf6',
  version: 'ver_01m7py4sm0dms6m7662dph9vy2',
  firstVersion: 'ver_01m5ev0nm0hvtg75fybbd2fqan',
  run: 'run_01m7w2y7m05e7nrq9bmjj62qh8',
  earlierRun: 'run_01m7vzgc00h6tek1tfrks5ggz3',
  childRun: 'run_01m7w2y92w0h9jqsrvtjn54w0v',
  retriedRun: 'run_01m7w9syw098aj8ecvzzy8jmzk',
  gpuPool: 'pool_01m7w2dr90bdrgh3s7c91z6n4e',
  runner: 'rnr_01m31k33m08pa2zyfrxv5gty3x',
  registrationToken: 'rtok_01m7w2y7m0ax2v5hcz9d3w8e6k',
  input: 'inp_01m7w2y9nm0grdy5tjxsqgsw29',
  schedule: 'sch_01m6he7yw0qzv5kqh8t3m2xw9c',
  session: 'ses_01m7vzgc0071gtg4nakxp70jft',
  ownerKey: 'key_01m5ev0nm0nxfsacmf7m4xqcwe',
  ciKey: 'key_01m72az1m0zc4w1ex322ph9bfb',
  staging: 'env_01m68jzvm0z8ke85nyjvgk29wn',
  production: 'env_01m68k00g87n9y17swypvsegxz',
  auditEntry: 'aud_01m7w2n2n0vvrf9hvkjbfv04rn',
  job: 'job_01m7w2y7m0c3t9ax5zr8qk4hd2',
  earlierAuditEntry: 'aud_01m7w2dr9017rkgtmakh4cf4vf',
  hook: 'hook_01m5ev0nm0e7vvhp2vfh3bv2sf',
  connection: 'conn_01m72az1m0ebcb0j9wfsjw0g9n',
  delivery: 'dlv_01m7w2bxp0e5jt236hfeks7s55',
  replayedDelivery: 'dlv_01m7w30270e12arjc1y1few8h3',
} as const

export const ACME: z.input<typeof Org> = {
  id: IDS.org,
  slug: 'acme',
  name: 'Acme',
  createdAt: NINE - 90 * DAY_MS,
}

export const INVOICE = { payee: 'Ada', amount: 12_500, patience: '2d' }
export const RECEIPT = { paid: true, receipt: 'Ada-12500-k3x9qz', note: 'Hello, Ada!' }

/** Just triggered. */
export const QUEUED: z.input<typeof Run> = {
  id: IDS.run,
  org: 'acme',
  workflow: { id: IDS.workflow, slug: 'approval', version: 3 },
  status: 'queued',
  trigger: { kind: 'api', actor: IDS.ciKey },
  environment: 'production',
  tags: ['invoices'],
  priority: 0,
  attempt: 1,
  parentRunId: null,
  rootRunId: null,
  retryOf: null,
  pool: { id: IDS.pool, name: 'default' },
  runner: null,
  isolation: null,
  lost: null,
  waiting: null,
  blocked: null,
  error: null,
  createdAt: NINE,
  queuedAt: NINE,
  claimedAt: null,
  startedAt: null,
  finishedAt: null,
  deletedAt: null,
  computeMs: 0,
  tokens: { input: 0, output: 0, cachedInput: 0, reasoning: 0 },
  costMicros: 0,
  budget: null,
}

/** Two seconds later it has asked its question. */
export const WAITING: z.input<typeof Run> = {
  ...QUEUED,
  status: 'awaiting_input',
  runner: { id: IDS.runner, name: 'build-1' },
  waiting: { for: 'input', since: NINE + 2100, until: NINE + 2 * DAY_MS, inputId: IDS.input },
  claimedAt: NINE + 40,
  startedAt: NINE + 320,
  computeMs: 84,
}

export const COMPLETED: z.input<typeof Run> = {
  ...QUEUED,
  status: 'completed',
  runner: { id: IDS.runner, name: 'build-1' },
  claimedAt: NINE + 40,
  startedAt: NINE + 320,
  finishedAt: NINE + 312_400,
  computeMs: 211,
}

export const CANCELLED: z.input<typeof Run> = {
  ...WAITING,
  status: 'cancelled',
  waiting: null,
  finishedAt: NINE + 60_000,
}

export const FAILED: z.input<typeof Run> = {
  ...COMPLETED,
  id: IDS.earlierRun,
  status: 'failed',
  error: { code: 'PROGRAM_FAILED', message: 'The bank does not answer.', detail: { name: 'Error' } },
  createdAt: NINE - 3_600_000,
  queuedAt: NINE - 3_600_000,
  claimedAt: NINE - 3_599_960,
  startedAt: NINE - 3_599_700,
  finishedAt: NINE - 3_590_000,
}

/** A delivery that no workflow wanted. */
export const FILTERED: z.input<typeof DeliverySummary> = {
  id: IDS.delivery,
  source: { kind: 'connection', id: IDS.connection, name: 'github-acme' },
  receivedAt: NINE - 600_000,
  outcome: 'filtered',
  reason: 'The filter refuses the field `ref` of the payload.',
  event: 'push',
  matches: [
    {
      workflow: { id: IDS.workflow, slug: 'approval' },
      outcome: 'filtered',
      reason: 'The filter refuses the field `ref` of the payload.',
      runId: null,
    },
  ],
  replayOf: null,
  attempts: 1,
}

/** Not a secret: it is in the documentation. */
export const WEBHOOK_SECRET = 'whsec_shown-once-to-whoever-made-it'

// What is said of several operations.
export const PAGING = 'Pages are joined by `nextCursor`: send it as `cursor` until it is null.'
export const ONCE = 'The secret is in this answer and never shown again.'
export const LEVELS =
  'What an environment sets goes before what the org sets. Within one level a name is a variable or a secret, ' +
  'never both.'
