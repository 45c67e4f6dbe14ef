import type { Offer } from '@windlass/shared/wire/agent.ts'
import { type SimulatedAgent, startSimulatedAgent } from '../../load/simulated-agent.ts'
import type { Random } from '@windlass/shared/test/_kit/seed.ts'

export interface LightAgent {
  agent: SimulatedAgent
  /** Runs that it was told to execute and has not ended. */
  executing(): ReadonlySet<string>
  /** Ends everything at once, and from now on whatever it gets. */
  hurry(): void
  /** As before: each run takes its time. */
  calm(): void
  close(): void
}

export interface LightOptions {
  url: string
  pollUrl: string
  token: string
  slots: number
  random: Random
  /** How long a run takes. */
  takesMs: readonly [number, number]
}

/** An agent without programs: a run takes some time, and returns. It asks for work whatever it is told of drains. */
export async function lightAgent({ random, takesMs, ...options }: LightOptions): Promise<LightAgent> {
  const executing = new Map<string, { offer: Offer; timer: NodeJS.Timeout }>()
  let isHurried = false
  const agent = await startSimulatedAgent({
    ...options,
    onRun(offer, self) {
      self.send({ t: 'entries', batches: [{ ...placed(offer), first: 1, entries: [['start', Date.now()]] }] })
      const timer = setTimeout(() => finish(offer.run), isHurried ? 0 : random.between(...takesMs))
      executing.set(offer.run, { offer, timer })
    },
    onFrame(frame) {
      if (frame.t === 'stale') for (const [run] of frame.runs) drop(run)
    },
  })

  function finish(run: string): void {
    const held = executing.get(run)
    if (!held) return
    drop(run)
    const end = ['end', Date.now(), { how: 'returned', outputText: 'null' }, 1] as const
    agent.send({ t: 'entries', batches: [{ ...placed(held.offer), first: 2, entries: [end] }] })
  }

  function drop(run: string): void {
    clearTimeout(executing.get(run)?.timer)
    executing.delete(run)
    agent.release(run)
  }

  return {
    agent,
    executing: () => new Set(executing.keys()),
    hurry() {
      isHurried = true
      for (const run of executing.keys()) finish(run)
    },
    calm: () => void (isHurried = false),
    close() {
      for (const { timer } of executing.values()) clearTimeout(timer)
      agent.close()
    },
  }
}

const placed = ({ run, epoch }: Offer) => ({ run, epoch })
