import type { Table } from '../cli.ts'

/** Deliveries as a list, whoever asks for them. */
export const DELIVERIES: Table = {
  columns: {
    DELIVERY: 'id',
    'RECEIVED?': 'receivedAt',
    AT: 'source.name',
    'EVENT?': 'event',
    OUTCOME: 'outcome',
    RUNS: 'matches.runId',
    'WHY NOT': 'reason',
  },
  none: 'No deliveries. Next: windlass webhooks get <workflow>',
}
