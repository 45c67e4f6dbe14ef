import type { z } from 'zod'
import type { Webhook } from '../../model/webhook.ts'
import type { ExamplesOf } from '../example.ts'
import { BASE_URL, DAY_MS, IDS, NINE, ONCE, WEBHOOK_SECRET } from '../example-things.ts'

const WEBHOOK: z.input<typeof Webhook> = {
  id: IDS.hook,
  url: `${BASE_URL}/v1/hooks/${IDS.hook}`,
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
    about:
      `${ONCE} The secret of before serves on for \`overlapMs\`, and former ones until their own ends: five at most, ` +
      'then CONFLICT. With 0 all of them end at once. API keys cannot do this: use a session.',
    input: { org: 'acme', workflow: 'approval', overlapMs: 86_400_000 },
    output: { webhook: WEBHOOK, secret: WEBHOOK_SECRET },
  },
}
