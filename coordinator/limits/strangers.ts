import { isIP } from 'node:net'
import { Fault } from '@windlass/shared/errors.ts'

const WINDOW_MS = 60_000

/** Number of addresses that are remembered. Only an attack has more; then the oldest begin anew. */
const MOST_ADDRESSES = 50_000

/** A look-up takes milliseconds. A request that has waited this long is told to come back. */
const WAIT_MS = 10_000
const SOON_MS = 1000

/** One credential that has to be looked up. */
interface Attempt {
  /** RATE_LIMITED when the credential must not be looked up. */
  refusal: Fault | undefined
  /** Notes that the credential has been looked up. Only refused ones count. */
  settle(this: void, wasRefused: boolean): void
}

/** How many credentials of an address may be refused in a minute. Each costs a look-up, and guessing wants many. */
export interface Strangers {
  /** Whether an attempt would have to wait, or be refused. */
  isFull(address: string): boolean
  /** Waits while those under way would reach the limit if all of them were refused. */
  attempt(address: string): Promise<Attempt>
}

interface Window {
  refused: number
  /** Number of credentials that are being looked up. */
  pending: number
  /**
   * Callbacks of waiting attempts; each is called when its turn comes or the limit is used up. The next window takes
   * them over.
   */
  waiting: Set<() => void>
  endsAt: number
}

const UNLIMITED: Attempt = { refusal: undefined, settle: () => {} }

interface StrangersOptions {
  /** What is looked up, for refusals. */
  what?: string
  /** In milliseconds, by which a window ends. */
  now?: () => number
}

/** `limit`: 0 for none. */
export function createStrangers(limit: number, options: StrangersOptions = {}): Strangers {
  const { what = 'credentials', now = () => performance.now() } = options
  const windows = new Map<string, Window>()
  /** A fleet behind one address may come back at once after a restart. */
  const mostWaiting = Math.max(1000, 10 * limit)

  function windowOf(network: string): Window {
    const known = windows.get(network)
    if (known && known.endsAt > now()) return known
    const waiting = known?.waiting ?? new Set()
    const fresh: Window = { refused: 0, pending: 0, waiting, endsAt: now() + WINDOW_MS }
    // By the end of its window each is put in anew, so that those that have ended stand first.
    windows.delete(network)
    if (windows.size >= MOST_ADDRESSES) windows.delete(windows.keys().next().value ?? '')
    windows.set(network, fresh)
    return fresh
  }

  const isFull = ({ refused, pending }: Window) => refused + pending >= limit
  const isSpent = ({ refused }: Window) => refused >= limit

  function begin(network: string): Attempt {
    const window = windowOf(network)
    if (isSpent(window)) return refusedBy(tooMany(what, limit, window.endsAt - now()))
    if (isFull(window)) return refusedBy(tooBusy(what, limit))
    window.pending++
    return {
      refusal: undefined,
      settle(wasRefused) {
        window.pending--
        if (wasRefused) window.refused++
        wake(network)
      },
    }
  }

  function wake(network: string): void {
    const window = windowOf(network)
    for (const goOn of window.waiting) {
      if (isFull(window) && !isSpent(window)) return
      goOn()
    }
  }

  function wait(network: string): Promise<Attempt> {
    const { waiting } = windowOf(network)
    return new Promise((resolve) => {
      const goOn = () => {
        clearTimeout(timer)
        waiting.delete(goOn)
        resolve(begin(network))
      }
      const timer = setTimeout(goOn, WAIT_MS)
      waiting.add(goOn)
    })
  }

  return {
    isFull: (address) => limit > 0 && isFull(windowOf(networkOf(address))),
    async attempt(address) {
      if (limit === 0) return UNLIMITED
      const network = networkOf(address)
      const window = windowOf(network)
      // Not looked up before it is known how the others end: a flood would be over before the first has been refused.
      const mustWait = isFull(window) && !isSpent(window) && window.waiting.size < mostWaiting
      return mustWait ? wait(network) : begin(network)
    },
  }
}

function refusedBy(refusal: Fault): Attempt {
  return { refusal, settle: () => {} }
}

function tooMany(what: string, limit: number, leftMs: number): Fault {
  return limited(limit, leftMs, `${limit} ${what} from this address were refused within ${WINDOW_MS / 1000} s`)
}

function tooBusy(what: string, limit: number): Fault {
  return limited(limit, SOON_MS, `too many ${what} from this address are being looked up`)
}

function limited(limit: number, leftMs: number, seen: string): Fault {
  const retryAfterMs = Math.max(1, Math.ceil(leftMs))
  const message = `${seen}; try again in ${Math.ceil(retryAfterMs / 1000)} s.`
  return new Fault('RATE_LIMITED', { scope: 'address', limit, windowMs: WINDOW_MS, retryAfterMs }, message)
}

/** An address of IPv4; of IPv6 the /64, which is what one customer has at least. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address
  const groups = groupsOf(address)
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (!isMapped)
    return `${groups
      .slice(0, 4)
      .map((group) => group.toString(16))
      .join(':')}::/64`
  const [high = 0, low = 0] = groups.slice(6)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

function groupsOf(address: string): number[] {
  // `::ffff:192.0.2.1` ends in two groups.
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...[a, b, c, d]: string[]) => {
    const group = (high?: string, low?: string) => (Number(high) * 256 + Number(low)).toString(16)
    return `${group(a, b)}:${group(c, d)}`
  })
  const [before = '', after] = plain.replace(/%.*$/, '').split('::')
  const list = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [first, last] = [list(before), list(after ?? '')]
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
}
