import { Fault } from '@windlass/shared/errors.ts'
import type { Acting, Actor, ProgramIdentity, RunnerIdentity } from '../actor.ts'
import type { Call, RawRequest } from '../api/call.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'
import { ClientGone } from '../unforeseen.ts'
import type { Open, OpenWork } from './open-work.ts'
import type { Proxies } from './proxies.ts'

export interface CallParts {
  input: unknown
  actor: Actor | undefined
  requestId: string
  request: HttpRequest
  response: HttpResponse
  /** Of the settings: by which callers reach us, whatever their requests say. */
  baseUrl: string | undefined
  open: OpenWork
  proxies: Proxies
  stay(): Promise<void>
  /** Of a row whose handler reads the body. */
  raw?: RawRequest | undefined
}

const STOPPING = 'The coordinator is being stopped. Ask again.'

/** The call that a handler sees. Everything that most handlers never ask for is made on demand. */
export class RequestCall implements Call<unknown>, Open {
  readonly input: unknown
  readonly requestId: string
  readonly #parts: CallParts
  #gone: AbortController | undefined
  #caller: Acting | undefined

  constructor(parts: CallParts) {
    this.input = parts.input
    this.requestId = parts.requestId
    this.#parts = parts
  }

  /**
   * Also aborts when the server stops: whoever waits for the sake of this client is to stop waiting. What it is aborted
   * with is what there is to answer then.
   */
  get gone(): AbortSignal {
    if (this.#gone) return this.#gone.signal
    const gone = new AbortController()
    this.#gone = gone
    const { response, open } = this.#parts
    // A handler may go on behind its answer; then there is nobody to be told of, nor anything to end.
    if (response.completed) gone.abort(new ClientGone())
    else {
      open.add(this)
      // Its handler may never come to its end: nothing is left here to be ended.
      response.once('abort', () => {
        open.delete(this)
        gone.abort(new ClientGone())
      })
    }
    return gone.signal
  }

  assertConnected(): void {
    if (this.#parts.response.completed) throw new ClientGone()
  }

  end(): void {
    this.#gone?.abort(new Fault('UNAVAILABLE', {}, STOPPING))
  }

  /** To be called when the handler is done. */
  settled(): void {
    if (this.#gone) this.#parts.open.delete(this)
  }

  stay(): Promise<void> {
    return this.#parts.stay()
  }

  header(name: string): string | undefined {
    return this.#parts.request.headers[name]
  }

  get peer(): string {
    return this.#parts.request.ip
  }

  get address(): string {
    return this.#parts.proxies.addressOf(this.#parts.request)
  }

  get base(): string {
    const { baseUrl, proxies, request } = this.#parts
    return baseUrl ?? proxies.baseOf(request)
  }

  get caller(): Acting {
    const { actor, requestId } = this.#parts
    if (actor?.kind === 'key' || actor?.kind === 'session')
      return (this.#caller ??= { ...actor, requestId, via: 'rest' })
    throw wrongActor('caller', actor)
  }

  get runner(): RunnerIdentity {
    const { actor } = this.#parts
    if (actor?.kind === 'runner') return actor
    throw wrongActor('runner', actor)
  }

  get program(): ProgramIdentity {
    const { actor } = this.#parts
    if (actor?.kind === 'program') return actor
    throw wrongActor('program', actor)
  }

  get raw(): RawRequest {
    const { raw } = this.#parts
    if (raw) return raw
    throw new Error('the handler asks for the raw body, but its row is not `raw`')
  }
}

function wrongActor(wanted: string, actor: Actor | undefined): Error {
  return new Error(`the handler asks for a ${wanted}, but its row lets in ${actor ? `a ${actor.kind}` : 'anybody'}`)
}
