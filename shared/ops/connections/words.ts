import type { z } from 'zod'
import type { Connection } from '../../model/connection.ts'
import type { ExamplesOf } from '../example.ts'
import { BASE_URL, DAY_MS, FILTERED, IDS, NINE, ONCE, PAGING, WEBHOOK_SECRET } from '../example-things.ts'

const CONNECTION: z.input<typeof Connection> = {
  id: IDS.connection,
  org: 'acme',
  name: 'github-acme',
  kind: 'github',
  url: `${BASE_URL}/v1/inbound/${IDS.connection}`,
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

export const connections: ExamplesOf<'connections'> = {
  create: {
    about:
      'Paste `url` and the secret into the provider, or send the secret that the provider shows. ' +
      `Descriptors name the connection under \`connections\`. ${ONCE} API keys cannot do this: use a ` +
      'session.',
    input: { org: 'acme', name: 'github-acme', kind: 'github' },
    output: { connection: CONNECTION, secret: WEBHOOK_SECRET },
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
  get: { about: 'Never with its secret.', input: { connection: IDS.connection }, output: { connection: CONNECTION } },
  update: {
    about:
      'While it is not enabled deliveries are answered 200 and recorded as `disabled`; they can be ' +
      'replayed. Descriptors mean a connection by its name.',
    input: { connection: IDS.connection, enabled: true },
    output: { connection: CONNECTION },
  },
  delete: {
    about:
      'A new one of the same name has another address. To pause one, use `connections.update`. API keys ' +
      'cannot do this: use a session.',
    input: { connection: IDS.connection },
    output: {},
  },
  setSecret: {
    about:
      'The secret of before serves on for `overlapMs`, and former ones until their own ends: five at most, then ' +
      'CONFLICT. With 0 all of them end at once. The secret that is set already stays as it is, and so do former ' +
      `ones unless \`overlapMs\` is 0. ${ONCE} API keys cannot do this: use a session.`,
    input: { connection: IDS.connection, secret: 'the-secret-that-the-provider-shows', overlapMs: 0 },
    output: { connection: { ...CONNECTION, rotatedAt: NINE }, secret: 'the-secret-that-the-provider-shows' },
  },
  test: {
    about: 'By the event patterns and filters of what is deployed now. No delivery is recorded.',
    input: { connection: IDS.connection, event: 'push', payload: { ref: 'refs/heads/feature' } },
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
    input: { connection: IDS.connection, limit: 20 },
    output: { deliveries: [FILTERED], nextCursor: null },
  },
}
