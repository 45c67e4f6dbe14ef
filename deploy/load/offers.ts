import type { BenchInstance } from './bench-instance.ts'
import { now } from './measure.ts'

const OFFERED_MS = 30_000

/** Claims of one run at a time. */
export interface Offers {
  /** Milliseconds from the call of a trigger until an agent has the offer of its run. */
  next(): Promise<number>
  close(): void
}

/** Of the workflow `noop-fresh`, whose runs end at once. */
export async function openOffers(instance: BenchInstance, slots: number): Promise<Offers> {
  const offered = new Map<string, number>()
  const arrivals = new Map<string, () => void>()
  const agent = await instance.simulateAgent({
    slots,
    onOffer({ run }) {
      offered.set(run, now())
      arrivals.get(run)?.()
    },
  })

  async function arrivalOf(run: string): Promise<void> {
    if (offered.has(run)) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const late = setTimeout(() => reject(new Error(`${run} was not offered within ${OFFERED_MS} ms`)), OFFERED_MS)
    arrivals.set(run, resolve)
    await promise.finally(() => clearTimeout(late))
    arrivals.delete(run)
  }

  return {
    async next() {
      const since = now()
      const { run } = await instance.client.runs.trigger({ workflow: 'noop-fresh' })
      await arrivalOf(run.id)
      return offered.get(run.id)! - since
    },
    close: () => agent.close(),
  }
}
