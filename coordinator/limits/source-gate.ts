import { LRUCache } from 'lru-cache'
import { Fault } from '@windlass/shared/errors.ts'
import { createRounds } from './rounds.ts'
import { createSeats } from './seats.ts'
import { networkOf, type Strangers } from './strangers.ts'

/** Looks webhooks and connections up by ids that anybody may send. */
export interface SourceGate {
  /**
   * Answers what a look-up has found that began after this call; all who wait for the same one share it. Throws
   * NOT_FOUND where there is nothing, which counts for the address unless the id was found not long ago. Throws
   * RATE_LIMITED, without a look-up, when the address has had too many of these; an id that was found not long ago is
   * looked up all the same.
   */
  pass<T extends { orgId: string }>(asked: Asked, find: () => Promise<T | undefined>): Promise<T>
}

interface Asked {
  id: string
  /** The sender's. */
  address: string
  /** When it fires, nobody waits for the answer any more. Asked for only where it may take long. */
  gone?: () => AbortSignal
  /** What `find` looks for: only those who ask for the same share a look-up. */
  what: 'source' | 'secrets'
}

/** Answers whose webhook or connection it is; undefined: nobody's. Many who ask at once share a statement. */
export interface SourceOwners {
  add(asked: { id: string; network: string }, gone?: AbortSignal): Promise<string | undefined>
}

/** Number of ids that are remembered; each takes some 200 bytes. */
const MOST_SOURCES = 20_000

/**
 * Look-ups at once, each by two statements: six of the twelve connections. 600 unsigned deliveries at once to one
 * webhook kept the triggers of other orgs waiting for seconds.
 */
const SEATS = { org: 2, all: 3 }

/** Of one id. With one at a time a delivery of a busy webhook waited for the look-up before its own. */
const AT_ONCE = 2

/**
 * Only what has an owner takes a seat. Where strangers took turns for invented ids, each of 1,000 networks its own,
 * signed deliveries waited for two seconds.
 */
export function createSourceGate(strangers: Strangers, owners: SourceOwners): SourceGate {
  /** Their orgs. */
  const known = new LRUCache<string, string>({ max: MOST_SOURCES })
  const rounds = createRounds(createSeats(SEATS), { atOnce: AT_ONCE })

  async function ownerOf({ id, address, gone }: Omit<Asked, 'what'>): Promise<string> {
    const { refusal, settle } = await strangers.attempt(address)
    if (refusal) throw refusal
    let isUnknown = false
    try {
      const orgId = await owners.add({ id, network: networkOf(address) }, gone?.())
      isUnknown = orgId === undefined
      if (orgId === undefined) throw new Fault('NOT_FOUND')
      return orgId
    } finally {
      settle(isUnknown)
    }
  }

  return {
    async pass({ id, address, what, gone }, find) {
      const orgId = known.get(id) ?? (await ownerOf({ id, address, gone }))
      const found = await rounds.share(`${what} ${id}`, orgId, find)
      if (found === undefined) {
        known.delete(id)
        throw new Fault('NOT_FOUND')
      }
      known.set(id, found.orgId)
      return found
    },
  }
}
