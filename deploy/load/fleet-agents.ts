// A process full of simulated agents, so that what they cost is nobody else's. Its parent tells it what to start, and
// it tells its parent of each offer. It ends with the channel to the parent.
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { now } from './measure.ts'
import { startSimulatedAgent } from './simulated-agent.ts'

export interface Order {
  url: string
  /** One for each pool; each serves for all agents of that pool. */
  tokens: string[]
  agents: number
}

export type FleetMessage =
  | { what: 'ready' }
  /** An agent has this run, by the clock that all processes of a host share. */
  | { what: 'offer'; run: string; at: number }
  /** Frames over the sockets so far, in both directions. */
  | { what: 'frames'; sent: number; received: number }

const AT_ONCE = 20
const tell = (message: FleetMessage) => void process.send?.(message)

let sent = 0
let received = 0

process.on('disconnect', () => process.exit(0))
process.on('message', (message: Order | 'frames') => {
  if (message === 'frames') tell({ what: 'frames', sent, received })
  else void start(message).then(() => tell({ what: 'ready' }))
})

async function start({ url, tokens, agents }: Order): Promise<void> {
  let begun = 0
  const lane = async () => {
    for (let n = begun++; n < agents; n = begun++) await startOne(url, tokens[n % tokens.length]!)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}

async function startOne(url: string, token: string): Promise<void> {
  const held = new Set<string>()
  const agent = await startSimulatedAgent({
    url,
    token,
    slots: 4,
    onOffer: ({ run }: Offer) => tell({ what: 'offer', run, at: now() }),
    onRun({ run, epoch }, self) {
      held.add(run)
      const at = Date.now()
      const entries = [
        ['start', at],
        ['end', at, { how: 'returned', outputText: 'null' }, 0],
      ] as const
      self.send({ t: 'entries', batches: [{ run, epoch, first: 1, entries: [...entries] }] })
    },
    onFrame(frame) {
      received++
      if (frame.t !== 'ack') return
      for (const { run, seq } of frame.acks) if (seq >= 2 && held.delete(run)) agent.release(run)
    },
    onSent: () => void sent++,
  })
}
