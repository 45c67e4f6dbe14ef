import { Fault } from '@windlass/shared/errors.ts'

/**
 * Bounds the downloads under way. Nobody needs a credential for them, and of each some pieces lie here until its reader
 * takes them: 2,000 slow readers without a bound took 1.6 GB.
 */
export interface DownloadSeats {
  /** For a reader at this address; call what it returns at the end. Throws `UNAVAILABLE` where none is free. */
  take(address: string): () => void
}

/** A fleet that installs itself from behind one address has its own half, and comes again for the rest. */
const MOST = 512
const MOST_OF_ONE = 256

export function createDownloadSeats({ most = MOST, mostOfOne = MOST_OF_ONE } = {}): DownloadSeats {
  const taken = new Map<string, number>()
  let all = 0
  return {
    take(address) {
      const own = taken.get(address) ?? 0
      if (all >= most || own >= mostOfOne)
        throw new Fault('UNAVAILABLE', {}, 'Too many downloads are under way; come again in a moment.')
      taken.set(address, own + 1)
      all++
      return () => {
        all--
        const left = taken.get(address)! - 1
        if (left > 0) taken.set(address, left)
        else taken.delete(address)
      }
    },
  }
}
