import type { Log } from '@windlass/shared/log.ts'
import type { HttpRequest, Untaken } from '../call/exchange.ts'
import { networkOf } from '../limits/strangers.ts'
import { createUnreadBytes, type UnreadBytes } from '../limits/unread-bytes.ts'
import type { Proxies } from './proxies.ts'

/** What is not sent yet of whole answers, as their readers do not take it. */
export interface Unsent {
  /** Cuts a reader who is too slow, or too much lies here for. */
  hold(reader: Reader, bytes: number, cut: () => void): Untaken
}

interface Reader {
  request: HttpRequest
  /** Undefined: a stranger, counted by his address. */
  orgId?: string
}

interface UnsentOptions {
  /** Of orgs. */
  unread: UnreadBytes
  /** By network: nobody without a credential has answers of others cut. */
  ofStrangers: UnreadBytes
  proxies: Proxies
  /** How long a reader may take nothing. */
  stallMs: number
  /** How long it may take for all of it. */
  deadlineMs: number
}

const MIB = 1024 * 1024

export function unreadAnswers(log: Log): Pick<UnsentOptions, 'unread' | 'ofStrangers'> {
  const options = { log, of: 'answer', sparesOne: true } as const
  return {
    unread: createUnreadBytes(options),
    // The largest of what anybody may read, the OpenAPI document, has 0.8 MB.
    ofStrangers: createUnreadBytes({ ...options, org: 8 * MIB, all: 32 * MIB }),
  }
}

export function createUnsent({ unread, ofStrangers, proxies, stallMs, deadlineMs }: UnsentOptions): Unsent {
  return {
    hold({ request, orgId }, bytes, cut) {
      const late = setTimeout(cut, deadlineMs)
      const stalled = setTimeout(cut, stallMs)
      const [readers, id] = orgId === undefined ? [ofStrangers, networkOf(proxies.addressOf(request))] : [unread, orgId]
      let release = readers.hold(id, bytes, cut)
      return {
        took() {
          stalled.refresh()
          release()
          release = readers.hold(id, bytes, cut)
        },
        release() {
          clearTimeout(late)
          clearTimeout(stalled)
          release()
        },
      }
    },
  }
}
