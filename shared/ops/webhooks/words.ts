import type { z } from 'zod'
import type { Connection } from '../../model/connection.ts'
import type { Delivery, DeliverySummary } from '../../model/delivery.ts'
import type { Webhook } from '../../model/webhook.ts'
import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

const HOOK = 'hook_01m5ev0nm0e7vvhp2vfh3bv2sf'
const GITHUB = 'conn_01m72az1m0ebcb0j9wfsjw0g9n'
const PUSHED = 'dlv_01m7w2bxp0e5jt236hfeks7s55'
const AGAIN = 'dlv_01m7w30270e12arjc1y1few8h3'
const BASE = 'https://windlass.example.com'

const WEBHOOK: z.input<typeof Webhook> = {
  id: HOOK,
  url: `${BASE}/v1/hooks/${HOOK}`,
  urlNote: null,
  auth: 'hmac',
  header: 'X-Windlass-Signature',
  environment: null,
  input: 'body',
  dedupe: null,
  createdAt: NINE - 30 * DAY_MS,
  rotatedAt: NINE - 2 * DAY_MS,
  previousSecretUntil: null,
  lastDeliveryAt: NINE - 600_000,
}

const CONNECTION: z.input<typeof Connection> = {
  id: GITHUB,
  org: 'acme',
  name: 'github-acme',
  kind: 'github',
  url: `${BASE}/v1/inbound/${GITHUB}`,
  urlNote: null,
  enabled: true,
  environment: null,
  hmac: null,
  bearer: null,
  event: null,
  dedupe: null,
  hasSecret: true,
  createdAt: NINE - 10 * DAY_MS,
  createdBy: IDS.session,
  rotatedAt: null,
  previousSecretUntil: null,
  lastDeliveryAt: NINE - 600_000,
}

const SUMMARY: z.input<typeof DeliverySummary> = {
  id: PUSHED,
  source: { kind: 'connection', id: GITHUB, name: 'github-acme' },
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

const DELIVERY: z.input<typeof Delivery> = {
  ...SUMMARY,
  method: 'POST',
  query: '',
  headers: { 'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': '72d3162e' },
  payload: {
    contentType: 'application/json',
    bytes: 28,
    kept: 'whole',
    text: '{"ref":"refs/heads/feature"}',
  },
}

const REPLAYED: z.input<typeof Delivery> = {
  ...DELIVERY,
  id: AGAIN,
  receivedAt: NINE + 60_000,
  outcome: 'triggered',
  reason: null,
  matches: [{ workflow: { id: IDS.workflow, slug: 'approval' }, outcome: 'triggered', reason: null, runId: IDS.run }],
  replayOf: PUSHED,
}

const RECEIPT = {
  delivery: { id: PUSHED, outcome: 'triggered' as const, reason: null },
  runs: [{ id: IDS.run, workflow: 'approval', status: 'queued' as const }],
}

/** Not a secret: it is in the documentation. */
const SECRET = 'whsec_shown-once-to-whoever-made-it'
const PAGING = 'Pages are joined by `nextCursor`: send it as `cursor` until it is null.'
const ONCE = 'The secret is in this answer and never shown again.'
const PROBE = 'Answers `WebHook-Allowed-Origin` as it was asked for, and `WebHook-Allowed-Rate: *`.'
const ANSWERS =
  'A delivery that is verified is answered 200, whatever becomes of it: `outcome` says it. One that ' +
  'is not is answered 401 and recorded. The same delivery again starts nothing and is answered with ' +
  'the first run. Bodies may have 25 MiB and come in chunks; a `Content-Encoding` is refused.'

export const webhooks: ExamplesOf<'webhooks'> = {
  get: {
    about:
      'Each workflow has one from its first deploy on. It takes nothing before `webhooks.rotate` has made ' +
      'a secret. What runs get of a delivery stands in `webhook` of the descriptor.',
    input: { org: 'acme', workflow: 'approval' },
    output: { webhook: WEBHOOK },
  },
  set: {
    about:
      '`hmac`: a signature over the body, as `X-Windlass-Signature: t=<seconds>,v1=<hex>` or by Standard ' +
      'Webhooks. `bearer`: the secret itself as `Authorization: Bearer`. The secret stays. API keys ' +
      'cannot do this: use a session.',
    input: { org: 'acme', workflow: 'approval', auth: 'hmac' },
    output: { webhook: WEBHOOK },
  },
  rotate: {
    about: `${ONCE} The secret of before serves on for \`overlapMs\`. API keys cannot do this: use a session.`,
    input: { org: 'acme', workflow: 'approval', overlapMs: 86_400_000 },
    output: { webhook: WEBHOOK, secret: SECRET },
  },
}

export const connections: ExamplesOf<'connections'> = {
  create: {
    about:
      'Paste `url` and the secret into the provider, or send the secret that the provider shows. ' +
      `Descriptors name the connection under \`connections\`. ${ONCE} API keys cannot do this: use a ` +
      'session.',
    input: { org: 'acme', name: 'github-acme', kind: 'github' },
    output: { connection: CONNECTION, secret: SECRET },
    fields: {
      hmac: 'How the provider signs; for the kind `hmac`.',
      bearer: 'Where the secret stands; for the kind `bearer`. Default: `Authorization: Bearer`.',
      event: 'Where the name of the event stands, for kinds that do not know it.',
      dedupe: 'Where the id of a delivery stands, for kinds that do not know it.',
      environment: 'Environment of the runs, unless the descriptor names one.',
    },
  },
  list: {
    about: `By name. ${PAGING}`,
    input: { org: 'acme', limit: 20 },
    output: { connections: [CONNECTION], nextCursor: null },
  },
  get: { about: 'Never with its secret.', input: { connection: GITHUB }, output: { connection: CONNECTION } },
  update: {
    about:
      'While it is not enabled deliveries are answered 200 and recorded as `disabled`; they can be ' +
      'replayed. Descriptors mean a connection by its name.',
    input: { connection: GITHUB, enabled: true },
    output: { connection: CONNECTION },
  },
  delete: {
    about:
      'A new one of the same name has another address. To pause one, use `connections.update`. API keys ' +
      'cannot do this: use a session.',
    input: { connection: GITHUB },
    output: {},
  },
  setSecret: {
    about: `The secret of before serves on for \`overlapMs\`. ${ONCE} API keys cannot do this: use a session.`,
    input: { connection: GITHUB, secret: 'the-secret-that-the-provider-shows', overlapMs: 0 },
    output: { connection: { ...CONNECTION, rotatedAt: NINE }, secret: 'the-secret-that-the-provider-shows' },
  },
  test: {
    about: 'By the event patterns and filters of what is deployed now. No delivery is recorded.',
    input: { connection: GITHUB, event: 'push', payload: { ref: 'refs/heads/feature' } },
    output: {
      test: {
        hasSecret: true,
        enabled: true,
        outcome: 'filtered',
        reason: 'The filter refuses the field `ref` of the payload.',
        matches: [
          {
            workflow: 'approval',
            outcome: 'filtered',
            reason: 'The filter refuses the field `ref` of the payload.',
          },
        ],
      },
    },
  },
  deliveries: {
    about: PAGING,
    input: { connection: GITHUB, limit: 20 },
    output: { deliveries: [SUMMARY], nextCursor: null },
  },
}

export const deliveries: ExamplesOf<'deliveries'> = {
  list: {
    about: `Filters narrow it down together. ${PAGING}`,
    input: { org: 'acme', outcome: 'filtered', limit: 20 },
    output: { deliveries: [SUMMARY], nextCursor: null },
  },
  get: {
    about: 'Headers that hold credentials are `[redacted]`.',
    input: { delivery: PUSHED },
    output: { delivery: DELIVERY },
  },
  payload: {
    about:
      'As an attachment. Of deliveries that were not verified, payloads above 1 MiB are not kept: `PAYLOAD_NOT_KEPT`.',
    input: { delivery: PUSHED },
    output: '{"ref":"refs/heads/feature"}',
    bytes: { types: ['application/json'], hasEtag: false },
  },
  replay: {
    about:
      'Makes a new delivery with `replayOf`, and runs although the delivery has started some before. One ' +
      'that was not verified is verified once more, by the secrets of today.',
    input: { delivery: PUSHED },
    output: { delivery: REPLAYED },
  },
}

export const hooks: ExamplesOf<'hooks'> = {
  receive: { about: ANSWERS, input: { hook: HOOK }, output: RECEIPT, fields: { hook: 'Id of the webhook.' } },
  probe: {
    about: PROBE,
    input: { hook: HOOK },
    output: '',
    fields: { hook: 'Id of the webhook.' },
    headers: { 'WebHook-Request-Origin': 'Who wants to deliver.' },
    bytes: { types: ['text/plain'], hasEtag: false },
  },
  receiveInbound: { about: ANSWERS, input: { connection: GITHUB }, output: RECEIPT },
  probeInbound: {
    about: PROBE,
    input: { connection: GITHUB },
    output: '',
    headers: { 'WebHook-Request-Origin': 'Who wants to deliver.' },
    bytes: { types: ['text/plain'], hasEtag: false },
  },
}
