import type { Tx } from '../../db/client.ts'
import { enqueue, type Jobs } from '../../jobs/queue.ts'

type Descent = Jobs['runs:cancelDescendants']

/** Jobs that cancel what runs have called. Those of one org are done one after the other: large trees take minutes. */
export function enqueueDescents(tx: Tx, descents: readonly Descent[], inMs: number): Promise<void> {
  return enqueue(
    tx,
    'runs:cancelDescendants',
    descents.map((payload) => {
      const { runId, upTo } = payload
      return { payload, inMs, key: `cancel-descendants:${runId}:${upTo ?? 'all'}` }
    }),
  )
}
