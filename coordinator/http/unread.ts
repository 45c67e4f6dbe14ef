import type { HttpResponse } from './exchange.ts'

/**
 * Refusals that wait for the end of a body that nobody wants. They can go out only when the body is in (what is sent
 * earlier is lost to most clients, who read after they have written); a body that does not end is cut.
 */
export class Unread {
  readonly #since = new Map<HttpResponse, number>()
  readonly #timer: NodeJS.Timeout
  readonly #deadlineMs: number

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
    // One timer for all: with a timer each, a flood of refusals would keep a million of them.
    this.#timer = setInterval(() => this.#sweep(), deadlineMs / 3).unref()
  }

  add(response: HttpResponse): void {
    this.#since.set(response, performance.now())
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#since.clear()
  }

  #sweep(): void {
    const oldest = performance.now() - this.#deadlineMs
    for (const [response, since] of this.#since) {
      if (response.completed || since < oldest) this.#since.delete(response)
      if (since < oldest) response.close()
    }
  }
}
