import { Fault } from '@windlass/shared/errors.ts'
import { createBySize } from './by-size.ts'
import { networkOf } from './strangers.ts'

/**
 * Bounds the downloads under way. Nobody needs a credential for them, and of each some pieces lie here until its reader
 * takes them: 2,000 slow readers without a bound took 1.6 GB.
 */
export interface DownloadSeats {
  /**
   * For a reader at this address; call what it returns at the end. Throws `UNAVAILABLE` where none is free. When all
   * are taken, the oldest download of the network that has the most gives way to a reader whose network has fewer: it
   * is told by `giveWay`, and has lost its seat.
   */
  take(address: string, giveWay: () => void): () => void
}

/** A fleet that installs itself from behind one address has its own half, and comes again for the rest. */
const MOST = 512
const MOST_OF_ONE = 256

export function createDownloadSeats({ most = MOST, mostOfOne = MOST_OF_ONE } = {}): DownloadSeats {
  /** What tells each to give way, the oldest first. */
  const byNetwork = new Map<string, Set<() => void>>()
  const bySize = createBySize()
  let all = 0

  const count = (network: string) => byNetwork.get(network)?.size ?? 0

  function leave(network: string, giveWay: () => void): void {
    const own = byNetwork.get(network)
    if (!own?.delete(giveWay)) return
    all--
    if (own.size > 0) return bySize.set(network, own.size)
    byNetwork.delete(network)
    bySize.remove(network)
  }

  /** Two more than it: otherwise the two would take the seat from each other for ever. */
  function makeRoomFor(network: string): boolean {
    const largest = bySize.largest()
    if (largest === undefined || count(largest) < count(network) + 2) return false
    const [oldest] = byNetwork.get(largest)!
    leave(largest, oldest!)
    oldest!()
    return true
  }

  return {
    take(address, giveWay) {
      const network = networkOf(address)
      if (count(network) >= mostOfOne || (all >= most && !makeRoomFor(network)))
        throw new Fault('UNAVAILABLE', {}, 'Too many downloads are under way; come again in a moment.')
      const mine = () => giveWay()
      const own = byNetwork.get(network) ?? new Set()
      byNetwork.set(network, own.add(mine))
      bySize.set(network, own.size)
      all++
      return () => leave(network, mine)
    },
  }
}
