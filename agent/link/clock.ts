/** What the coordinator's clock shows, as far as its answers have told. The clocks of hosts are wrong more often than one thinks. */
export interface Clock {
  /** Milliseconds since the epoch, by the coordinator's clock. */
  now(): number
  /** How far this machine's clock is behind it. */
  readonly offsetMs: number
  /** The coordinator said a moment ago what its clock shows. */
  learn(now: number): void
  /** The same from the `Date` of an answer. */
  learnDate(date: string | null | undefined): void
}

/** What an answer takes on its way; a smaller difference says nothing, and times would jump about with it. */
const NOISE_MS = 1000
/** `Date` counts whole seconds, and an answer may have been waited for. */
const DATE_NOISE_MS = 5000
const HALF_SECOND_MS = 500

export function createClock(local: () => number = Date.now): Clock {
  let offsetMs = 0

  function settle(now: number, noiseMs: number): void {
    const found = now - local()
    if (Math.abs(found - offsetMs) > noiseMs) offsetMs = Math.abs(found) <= noiseMs ? 0 : Math.round(found)
  }

  return {
    now: () => local() + offsetMs,
    get offsetMs() {
      return offsetMs
    },
    learn: (now) => settle(now, NOISE_MS),
    learnDate(date) {
      const at = Date.parse(date ?? '')
      if (Number.isFinite(at)) settle(at + HALF_SECOND_MS, DATE_NOISE_MS)
    },
  }
}

/** `fetch` that looks at what the answer says of the time. */
export function withClock(clock: Clock, ask: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const response = await ask(input, init)
    clock.learnDate(response.headers.get('date'))
    return response
  }
}
