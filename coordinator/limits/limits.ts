import { Fault } from '@windlass/shared/errors.ts'
import { Bucket } from './bucket.ts'
import type { Draws } from './store.ts'

/** Who sends requests. */
interface Requester {
  /** What he is called in refusals. */
  kind: string
  id: string
  orgId: string
  org: string
}

/** What the limits say of one request more. */
export interface Decision {
  /** RATE_LIMITED when the request is not to be served. */
  refusal: Fault | null
  /** For the answer, whatever it is. */
  headers: readonly (readonly [name: string, value: string])[]
}

export interface Limits {
  /** Takes one request from the buckets of the caller and of its org. At once, when what this coordinator holds suffices. */
  take(caller: Requester): Decision | Promise<Decision>
}

export interface LimitsOptions {
  /** Requests in a window; 0: no limit. */
  identity: number
  org: number
  windowMs: number
  draws: Draws
}

type Scope = 'identity' | 'org'
type Held = readonly (readonly [scope: Scope, bucket: Bucket])[]

const UNLIMITED: Decision = { refusal: null, headers: [] }

/** Far more callers than send requests within a window. */
const MOST_BUCKETS = 50_000

export function createLimits(options: LimitsOptions): Limits {
  if (options.identity === 0 && options.org === 0) return { take: () => UNLIMITED }
  return new SharedLimits(options)
}

class SharedLimits implements Limits {
  readonly #options: LimitsOptions
  readonly #buckets = new Map<string, Bucket>()
  readonly #policy: readonly [string, string]
  #sweptAt = performance.now()

  constructor(options: LimitsOptions) {
    this.#options = options
    const seconds = options.windowMs / 1000
    const each = (['identity', 'org'] as const).filter((scope) => options[scope] > 0)
    // The form of draft-ietf-httpapi-ratelimit-headers: a list of quotas, each with its window in seconds.
    const policy = each.map((scope) => `"${scope}";q=${options[scope]};w=${Math.ceil(seconds)}`).join(', ')
    this.#policy = ['ratelimit-policy', policy]
  }

  take(caller: Requester): Decision | Promise<Decision> {
    const held = this.#heldFor(caller)
    return this.#decide(caller, held, performance.now()) ?? this.#wait(caller, held)
  }

  async #wait(caller: Requester, held: Held): Promise<Decision> {
    // Each turn brings a block to those who wait, in the order in which they came, or the word that there is no more.
    for (;;) {
      for (const [, bucket] of held) if (bucket.state(performance.now()) === 'empty') await bucket.refill()
      const decision = this.#decide(caller, held, performance.now())
      if (decision) return decision
    }
  }

  /** Spends from both buckets or from none. Undefined: the store has to be asked. */
  #decide(caller: Requester, held: Held, now: number): Decision | undefined {
    let isOpen = true
    let spent: Held[number] | undefined
    for (const each of held) {
      const state = each[1].state(now)
      if (state !== 'open') isOpen = false
      // The one that ends last says how long to wait.
      if (state === 'spent' && (!spent || spent[1].endsAt < each[1].endsAt)) spent = each
    }
    if (spent) return this.#refuse(caller, held, { scope: spent[0], bucket: spent[1], now })
    if (!isOpen) return undefined
    for (const [, bucket] of held) bucket.spend()
    return { refusal: null, headers: [this.#policy, remainingHeader(held, now)] }
  }

  #refuse(
    caller: Requester,
    held: Held,
    { scope, bucket, now }: { scope: Scope; bucket: Bucket; now: number },
  ): Decision {
    const retryAfterMs = Math.max(1, Math.ceil(bucket.endsAt - now))
    const seconds = Math.ceil(retryAfterMs / 1000)
    const { windowMs } = this.#options
    const who = scope === 'org' ? `The org ${caller.org}` : `This ${caller.kind}`
    const message = `${who} has used up its ${bucket.limit} requests in ${windowMs / 1000} s; try again in ${seconds} s.`
    return {
      refusal: new Fault('RATE_LIMITED', { scope, limit: bucket.limit, windowMs, retryAfterMs }, message),
      headers: [this.#policy, remainingHeader(held, now), ['retry-after', String(seconds)]],
    }
  }

  #heldFor(caller: Requester): Held {
    const { identity, org } = this.#options
    const held: (readonly [Scope, Bucket])[] = []
    if (identity > 0) held.push(['identity', this.#bucket(`i:${caller.id}`, identity)])
    if (org > 0) held.push(['org', this.#bucket(`o:${caller.orgId}`, org)])
    return held
  }

  #bucket(key: string, limit: number): Bucket {
    const known = this.#buckets.get(key)
    if (known) return known
    this.#makeRoom(performance.now())
    const { windowMs, draws } = this.#options
    const bucket = new Bucket({ key, limit, windowMs, draws })
    this.#buckets.set(key, bucket)
    return bucket
  }

  #makeRoom(now: number): void {
    if (now - this.#sweptAt > this.#options.windowMs) {
      this.#sweptAt = now
      for (const [key, bucket] of this.#buckets) if (bucket.isIdle(now)) this.#buckets.delete(key)
    }
    // The first that was put in is the oldest. What it held is lost to its owner, until the window ends.
    if (this.#buckets.size >= MOST_BUCKETS) this.#buckets.delete(this.#buckets.keys().next().value ?? '')
  }
}

function remainingHeader(held: Held, now: number): readonly [string, string] {
  let text = ''
  for (const [scope, bucket] of held) {
    const seconds = Math.max(0, Math.ceil((bucket.endsAt - now) / 1000))
    text += `${text === '' ? '' : ', '}"${scope}";r=${bucket.remaining};t=${seconds}`
  }
  return ['ratelimit', text]
}
