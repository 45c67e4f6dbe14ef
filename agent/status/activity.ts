import type { Ending } from '@windlass/shared/model/ending.ts'
import type { CoordinatorFrame } from '@windlass/shared/wire/agent.ts'

export type Connection = { state: 'connecting' | 'connected' | 'refused'; since: number }

/** What the agent has done since its start, for those who watch it. Times are milliseconds since the epoch. */
export interface Activity {
  readonly startedAt: number
  readonly connection: Connection
  readonly lastPollAt: number | null
  readonly lastHeartbeatAt: number | null
  readonly lastAckAt: number | null
  readonly counts: { polls: number; claims: number; heartbeats: number; connects: number }
  /** How many processes of runs have ended how. */
  readonly endings: ReadonlyMap<Ending['how'], number>
  /** A question for work is being sent. */
  polled(): void
  claimed(count: number): void
  heard(frame: CoordinatorFrame): void
  down(): void
  ended(how: Ending['how']): void
  /** A program was handed to a process, so long after its offer. */
  started(ms: number): void
  onStart(listener: (ms: number) => void): void
}

export function createActivity(): Activity {
  const endings = new Map<Ending['how'], number>()
  const counts = { polls: 0, claims: 0, heartbeats: 0, connects: 0 }
  let connection: Connection = { state: 'connecting', since: Date.now() }
  let lastPollAt: number | null = null
  let lastHeartbeatAt: number | null = null
  let lastAckAt: number | null = null
  let onStart: (ms: number) => void = () => undefined
  const nowIs = (state: Connection['state']) => (connection = { state, since: Date.now() })

  function heard({ t }: CoordinatorFrame): void {
    if (t === 'ack') lastAckAt = Date.now()
    else if (t === 'refused') nowIs('refused')
    else if (t === 'welcome') {
      counts.connects += 1
      nowIs('connected')
    } else if (t === 'beat') {
      counts.heartbeats += 1
      lastHeartbeatAt = Date.now()
    }
  }

  return {
    startedAt: Date.now(),
    get connection() {
      return connection
    },
    get lastPollAt() {
      return lastPollAt
    },
    get lastHeartbeatAt() {
      return lastHeartbeatAt
    },
    get lastAckAt() {
      return lastAckAt
    },
    counts,
    endings,
    polled() {
      counts.polls += 1
      lastPollAt = Date.now()
    },
    claimed: (count) => void (counts.claims += count),
    heard,
    down() {
      if (connection.state === 'connected') nowIs('connecting')
    },
    started: (ms) => onStart(ms),
    onStart: (listener) => void (onStart = listener),
    ended: (how) => void endings.set(how, (endings.get(how) ?? 0) + 1),
  }
}
