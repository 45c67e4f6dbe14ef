import type { Log } from '@windlass/shared/log.ts'
import type { Acting, Caller, ProgramIdentity, RunnerIdentity } from '../actor.ts'
import type { Call, RawRequest } from '../api/call.ts'
import type { OwnedNeeds } from '../call/owned.ts'
import type { Config } from '../config.ts'
import type { Turns } from '../call/handle.ts'

/** Who asks, in one HTTP request; and what is known of that. */
export interface Asking {
  readonly caller: Caller
  readonly deps: OwnedNeeds & { log: Log; config: Pick<Config, 'strict'>; turns: Turns }
  readonly requestId: string
  readonly address: string
  readonly peer: string
  readonly base: string
  /** Throws VALIDATION_FAILED where the request carries several calls, and one key for all of them. */
  keyInHeader(): string | undefined
  /** Of the body of the request. */
  readonly bytes: number
  /** Throws RATE_LIMITED when too much waits for this caller; answers what is to be called when the call is over. */
  wait(): () => void
  /** Throws UNAUTHENTICATED when the credential serves no more. */
  stay(): Promise<void>
  /** Made on demand: it aborts when the client has gone, or the server stops. */
  get gone(): AbortSignal
  /** Throws when the client has gone. */
  assertConnected(): void
}

/** A tool shows 20,000 characters of a log, and a resource 200,000; what is more was read for nothing. */
const PAGE_BYTES = 256 * 1024

/** The call that a handler sees when a tool stands in front of it. */
export class ToolCall implements Call<unknown> {
  readonly input: unknown
  readonly requestId: string
  readonly caller: Acting
  readonly pageBytes = PAGE_BYTES
  readonly #asking: Asking

  constructor(asking: Asking, input: unknown) {
    this.input = input
    this.requestId = asking.requestId
    this.caller = { ...asking.caller, requestId: asking.requestId, via: 'mcp' }
    this.#asking = asking
  }

  get gone(): AbortSignal {
    return this.#asking.gone
  }

  assertConnected(): void {
    this.#asking.assertConnected()
  }

  stay(): Promise<void> {
    return this.#asking.stay()
  }

  get address(): string {
    return this.#asking.address
  }

  get peer(): string {
    return this.#asking.peer
  }

  get base(): string {
    return this.#asking.base
  }

  /** Of the headers, which belong to the whole request, a tool is told the one that its description names. */
  header(name: string): string | undefined {
    return name === 'idempotency-key' ? this.#asking.keyInHeader() : undefined
  }

  get raw(): RawRequest {
    throw new Error('a tool has no body of its own')
  }

  get runner(): RunnerIdentity {
    throw new Error('a tool is never called by a runner')
  }

  get program(): ProgramIdentity {
    throw new Error('a tool is never called by a program')
  }
}
