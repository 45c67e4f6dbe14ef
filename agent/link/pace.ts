/**
 * How many bytes may be on their way up: sent, and not known to have arrived. A heartbeat stands behind all of them, in
 * the buffers of the socket, of the kernel and of the network, so entries wait for what is more than the line brings in
 * some seconds. A ping is answered when all that was sent before it has arrived.
 *
 * A connection begins with little, and has twice as much each time that half of it arrives within a second, without the
 * time that the way itself takes: between two and four seconds' worth. Beyond what is ever under way a line is fast: it
 * has no limit, and no pings of its own.
 */
export class UpwardPace {
  readonly #options: PaceOptions
  #limitBytes = LEAST_BYTES
  #sent = 0
  #arrived = 0
  /** From when on what is under way has been the next to arrive. */
  #begunAt = 0
  #ping: { text: string; sent: number; at: number } | undefined
  #pings = 0
  /** The shortest time that an answer took: so long takes the way, to the coordinator and back. */
  #wayMs = Infinity
  #isOff = false
  #resume: (() => void) | undefined

  constructor(options: PaceOptions) {
    this.#options = options
  }

  get hasRoom(): boolean {
    return this.#underWay < this.#limitBytes
  }

  /** Resolves when there is room, or the connection is over. For one caller at a time. */
  room(): Promise<void> {
    if (this.hasRoom) return Promise.resolve()
    return new Promise((resolve) => (this.#resume = resolve))
  }

  /** Bytes that may be under way: what the line is known to bring in some seconds. */
  get limitBytes(): number {
    return this.#limitBytes
  }

  sent(bytes: number): void {
    if (this.#underWay === 0) this.#begunAt = this.#options.now()
    this.#sent += bytes
    this.#pingWhenMuch()
  }

  /** Pings unless the answer to a ping is on its way already: the coordinator takes no floods of them. */
  ping(): void {
    if (this.#isOff) return this.#options.ping('')
    if (!this.#ping) return this.#pingNow()
    if (this.#options.now() - this.#ping.at < UNANSWERED_MS) return
    // Something on the way keeps pings for itself: others are heard of, or this connection would be over.
    this.#isOff = true
    this.#limitBytes = Infinity
    this.#wake()
  }

  /** Takes the text of a pong. */
  answered(text: string): void {
    const ping = this.#ping
    if (ping?.text !== text) return
    const now = this.#options.now()
    const bytes = ping.sent - this.#arrived
    this.#wayMs = Math.min(this.#wayMs, now - ping.at)
    const lateMs = now - ping.at - this.#wayMs
    const tookMs = Math.max(1, now - this.#begunAt - this.#wayMs)
    this.#ping = undefined
    this.#arrived = ping.sent
    this.#begunAt = now
    if (this.#isOff) return
    if (lateMs > LATE_MS) this.#fall((LATE_MS * bytes) / tookMs)
    else if (tookMs < QUICK_MS && 2 * bytes >= this.#limitBytes) this.#limitBytes = limited(2 * this.#limitBytes)
    this.#pingWhenMuch()
    this.#wake()
  }

  /** The connection is over: nobody waits any more. */
  end(): void {
    this.#limitBytes = Infinity
    this.#wake()
  }

  get #underWay(): number {
    return this.#sent - this.#arrived
  }

  /** To what arrives in 3 s. Without a limit that is not known: most of it had arrived before the ping was sent. */
  #fall(bytes: number): void {
    // Nothing was under way: it was not the line that took so long.
    if (bytes === 0 && this.#limitBytes < Infinity) return
    this.#limitBytes = this.#limitBytes === Infinity ? LEAST_BYTES : Math.min(this.#limitBytes, limited(bytes))
  }

  /** A caller waits for room until an answer comes, so one has to be on its way then. */
  #pingWhenMuch(): void {
    if (!this.#ping && 2 * this.#underWay >= this.#limitBytes) this.#pingNow()
  }

  #pingNow(): void {
    const text = String((this.#pings += 1))
    this.#ping = { text, sent: this.#sent, at: this.#options.now() }
    this.#options.ping(text)
  }

  #wake(): void {
    if (!this.hasRoom) return
    this.#resume?.()
    this.#resume = undefined
  }
}

interface PaceOptions {
  /** Sends a ping with this text behind what was sent. */
  ping(text: string): void
  /** Milliseconds of a clock that only runs forward. */
  now(): number
}

/** 6 KB/s bring them in 3 s. */
const LEAST_BYTES = 16 * 1024
/** More than the unacknowledged entries that the coordinator is ever sent. */
const MOST_BYTES = 4 * 1024 * 1024
const QUICK_MS = 1000
const LATE_MS = 3000
/**
 * The slowest line answers before that, or is taken for dead. The coordinator waits for 60 s for the rest of a frame,
 * and we look each 5 s.
 */
const UNANSWERED_MS = 30_000

function limited(bytes: number): number {
  return bytes > MOST_BYTES ? Infinity : Math.max(LEAST_BYTES, Math.floor(bytes))
}
