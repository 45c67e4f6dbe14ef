import { pause } from '@windlass/shared/time.ts'
import type { RunnerIdentity } from '../actor.ts'
import { createPerMinute } from '../limits/per-minute.ts'
import { createSeats } from '../limits/seats.ts'

/**
 * Bounds how many agents that connect are brought to one mind with the database at once. Four agents that held 14,000
 * runs each and connected again and again kept the triggers of all others waiting for a second and more.
 */
export interface Greetings {
  /**
   * Resolves when it is the agent's turn, with what ends it; with nothing when it asks again meanwhile, for another
   * connection, which has its place.
   */
  take(runner: Pick<RunnerIdentity, 'id' | 'orgId'>): Promise<EndTurn | undefined>
}

/**
 * `placements`: those that were looked at, of the agent or of the database. When an agent has come with many of them
 * before within the minute, the org's next agent waits for a while.
 */
type EndTurn = (placements: number) => void

const SEATS = { org: 2, all: 6 }
/** An agent that has lost its connection holds as many as it has slots. So many take some milliseconds. */
const FEW = 256
/** So many times the length of a greeting with many. */
const REST = 4

export function createGreetings(): Greetings {
  const seats = createSeats(SEATS)
  // An org rests without a seat that others could have.
  const turns = createSeats({ org: SEATS.org, all: Infinity })
  /** By runner. A hello may take 2 MiB, so that those which were replaced must not wait any more. */
  const latest = new Map<string, (end: EndTurn | undefined) => void>()
  /** A large fleet whose coordinator comes back does it once each: 300 agents waited for 9 s in place of 2. */
  const large = createPerMinute(1)

  async function turnOf({ id, orgId }: Pick<RunnerIdentity, 'id' | 'orgId'>): Promise<EndTurn> {
    const endTurn = await turns.take(orgId)
    const leave = await seats.take(orgId)
    const startedAt = performance.now()
    return (placements) => {
      leave()
      if (placements <= FEW || large.take(id)) return endTurn()
      void pause(REST * (performance.now() - startedAt)).then(endTurn)
    }
  }

  async function begin(runner: Pick<RunnerIdentity, 'id' | 'orgId'>): Promise<void> {
    const end = await turnOf(runner)
    const resolve = latest.get(runner.id)!
    latest.delete(runner.id)
    resolve(end)
  }

  return {
    take(runner) {
      const { promise, resolve } = Promise.withResolvers<EndTurn | undefined>()
      const older = latest.get(runner.id)
      latest.set(runner.id, resolve)
      if (older) older(undefined)
      else void begin(runner)
      return promise
    },
  }
}
