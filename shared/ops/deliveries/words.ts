import type { z } from 'zod'
import type { Delivery } from '../../model/delivery.ts'
import type { ExamplesOf } from '../example.ts'
import { KEY_HEADER } from '../idempotency-key.ts'
import { FILTERED, IDS, NINE, PAGING } from '../example-things.ts'

const DELIVERY: z.input<typeof Delivery> = {
  ...FILTERED,
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
  id: IDS.replayedDelivery,
  receivedAt: NINE + 60_000,
  outcome: 'triggered',
  reason: null,
  matches: [{ workflow: { id: IDS.workflow, slug: 'approval' }, outcome: 'triggered', reason: null, runId: IDS.run }],
  replayOf: IDS.delivery,
}

export const deliveries: ExamplesOf<'deliveries'> = {
  list: {
    about: `Filters narrow it down together. ${PAGING}`,
    input: { org: 'acme', outcome: 'filtered', limit: 20 },
    output: { deliveries: [FILTERED], nextCursor: null },
  },
  get: {
    about: 'Headers that hold credentials are `[redacted]`.',
    input: { delivery: IDS.delivery },
    output: { delivery: DELIVERY },
  },
  payload: {
    about:
      'As an attachment. Of deliveries that were not verified, payloads above 1 MiB are not kept: `PAYLOAD_NOT_KEPT`.',
    input: { delivery: IDS.delivery },
    output: '{"ref":"refs/heads/feature"}',
    bytes: { types: ['application/json'], hasEtag: false },
  },
  replay: {
    about: [
      'Makes a new delivery with `replayOf`, and runs although the delivery has started some before. One that was not',
      'verified is verified once more, by the secrets of today. Each call makes another delivery, unless an',
      'idempotency key says that it is the same call: then the first one is answered with 200. A key counts for the',
      'webhook or connection.',
    ].join(' '),
    input: { delivery: IDS.delivery, idempotencyKey: 'replay-72d3162e' },
    headers: KEY_HEADER,
    output: { delivery: REPLAYED },
  },
}
