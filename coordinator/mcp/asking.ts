import type { Acting, Caller, ProgramIdentity, RunnerIdentity } from '../actor.ts'
import type { Call } from '../api/call.ts'
import type { Deps } from '../deps.ts'

/** Who asks, in one HTTP request; and what is known of that. */
export interface Asking {
  readonly caller: Caller
  readonly deps: Deps
  readonly requestId: string
  readonly address: string
  /** Of the body of the request. */
  readonly bytes: number
  /** Made on demand: it aborts when the client has gone, or the server stops. */
  get gone(): AbortSignal
}

/** The call that a handler sees when a tool stands in front of it. */
export class ToolCall implements Call<unknown> {
  readonly input: unknown
  readonly deps: Deps
  readonly requestId: string
  readonly caller: Acting
  readonly #asking: Asking

  constructor(asking: Asking, input: unknown) {
    this.input = input
    this.deps = asking.deps
    this.requestId = asking.requestId
    this.caller = { ...asking.caller, requestId: asking.requestId, via: 'mcp' }
    this.#asking = asking
  }

  get gone(): AbortSignal {
    return this.#asking.gone
  }

  get address(): string {
    return this.#asking.address
  }

  /** Headers belong to the whole request, which may carry several calls: a tool has its arguments. */
  header(): undefined {
    return undefined
  }

  get runner(): RunnerIdentity {
    throw new Error('a tool is never called by a runner')
  }

  get program(): ProgramIdentity {
    throw new Error('a tool is never called by a program')
  }
}
