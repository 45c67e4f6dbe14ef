import { Fault } from '@windlass/shared/errors.ts'
import { createBySize } from './by-size.ts'
import { networkOf } from './strangers.ts'
import { createTaking, type Taking } from './taking.ts'

/**
 * Bounds the downloads under way. Nobody needs a credential for them, and of each some pieces lie here until its reader
 * takes them: 2,000 slow readers without a bound took 1.6 GB.
 */
export interface DownloadSeats {
  /**
   * For a reader at this address. Throws `UNAVAILABLE` where none is free. When all are taken, another download gives
   * way: it is told by `giveWay`, and has lost its seat. A reader whose network has none gets the seat of one that is
   * hardly read; any reader that of the oldest of the network with the most, if its own has fewer; and where each
   * network has one, a reader whose network has none that of one that has just begun, else of the slowest.
   */
  take(address: string, giveWay: () => void): DownloadSeat
}

export interface DownloadSeat {
  /** Its reader has taken so many bytes more. */
  took(this: void, bytes: number): void
  /** To be called at the end; again does nothing. */
  leave(this: void): void
}

/** A fleet that installs itself from behind one address has its own half, and comes again for the rest. */
const MOST = 512
const MOST_OF_ONE = 256
/** A reader that takes less hardly reads: the archive of an agent, 45 MB, would take three quarters of an hour. */
const HARDLY_BYTES_PER_S = 16 * 1024

interface Options {
  most: number
  mostOfOne: number
  now: () => number
}

interface Download {
  network: string
  giveWay: () => void
  taking: Taking
}

export function createDownloadSeats(options: Partial<Options> = {}): DownloadSeats {
  const { most = MOST, mostOfOne = MOST_OF_ONE, now = () => performance.now() } = options
  /** The oldest first, here and of each network. */
  const all = new Set<Download>()
  const byNetwork = new Map<string, Set<Download>>()
  const bySize = createBySize()

  const count = (network: string) => byNetwork.get(network)?.size ?? 0

  function leave(one: Download): void {
    if (!all.delete(one)) return
    const own = byNetwork.get(one.network)!
    own.delete(one)
    if (own.size > 0) return bySize.set(one.network, own.size)
    byNetwork.delete(one.network)
    bySize.remove(one.network)
  }

  /** Two more than it: otherwise the two would take the seat from each other for ever. */
  function oldestOfMost(network: string): Download | undefined {
    const largest = bySize.largest()
    if (largest === undefined || count(largest) < count(network) + 2) return undefined
    return byNetwork.get(largest)!.values().next().value
  }

  function makeRoomFor(network: string): boolean {
    const { slowest, rate, quietest } = count(network) === 0 ? slowestOf(all) : NOBODY
    // Newcomers may not read at all: they give way to each other before one that reads does.
    const found = rate < HARDLY_BYTES_PER_S ? slowest : (oldestOfMost(network) ?? quietest ?? slowest)
    if (!found) return false
    leave(found)
    found.giveWay()
    return true
  }

  return {
    take(address, giveWay) {
      const network = networkOf(address)
      if (count(network) >= mostOfOne || (all.size >= most && !makeRoomFor(network)))
        throw new Fault('UNAVAILABLE', {}, 'Too many downloads are under way; come again in a moment.')
      const mine: Download = { network, giveWay, taking: createTaking(now) }
      const own = byNetwork.get(network) ?? new Set<Download>()
      all.add(mine)
      byNetwork.set(network, own.add(mine))
      bySize.set(network, own.size)
      return { took: mine.taking.took, leave: () => leave(mine) }
    },
  }
}

interface Slowest {
  /** Of those that have a rate. */
  slowest: Download | undefined
  /** Its rate. */
  rate: number
  /** Of those too young for a rate, the one that has taken nothing for longest. */
  quietest: Download | undefined
}

const NOBODY: Slowest = { slowest: undefined, rate: Infinity, quietest: undefined }

function slowestOf(all: Iterable<Download>): Slowest {
  const found = { ...NOBODY }
  for (const one of all) {
    const rate = one.taking.bytesPerS()
    if (rate === undefined) {
      if (!found.quietest || one.taking.quietMs() > found.quietest.taking.quietMs()) found.quietest = one
    } else if (rate < found.rate) {
      found.slowest = one
      found.rate = rate
    }
  }
  return found
}
