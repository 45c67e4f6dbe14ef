import assert from 'node:assert/strict'
import type { Readable } from 'node:stream'
import type { FrameName } from '@windlass/shared/wire/program.ts'

const HEADER_BYTES = 13
const WAIT_MS = 60_000
const CODES: Record<string, FrameName> = {
  r: 'ready',
  b: 'begun',
  o: 'out',
  e: 'err',
  p: 'phase',
  l: 'log',
  c: 'children',
  R: 'returned',
  T: 'threw',
  i: 'idle',
  j: 'journal',
  k: 'park',
  L: 'live',
  B: 'blocked',
  J: 'rejoin',
}

interface Seen {
  name: FrameName
  text: string
}

/** The frames of a program, whichever pipe they come from, to be waited for one by one. */
export class Frames {
  /** Everything it has said so far. */
  readonly seen: Seen[] = []
  readonly #taken = new Set<Seen>()
  #rung = Promise.withResolvers<void>()

  /** The next frame of that name that nobody has waited for yet. */
  async next(name: FrameName): Promise<string> {
    const deadline = performance.now() + WAIT_MS
    for (;;) {
      const found = this.seen.find((frame) => frame.name === name && !this.#taken.has(frame))
      if (found) {
        this.#taken.add(found)
        return found.text
      }
      const left = deadline - performance.now()
      assert.ok(left > 0, `no frame ${name} within ${WAIT_MS} ms, but ${JSON.stringify(this.seen.slice(-20))}`)
      await this.#ring(left)
    }
  }

  collectFrom(pipe: Readable): void {
    let held = Buffer.alloc(0)
    pipe.on('error', () => {})
    pipe.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      while (held.length >= HEADER_BYTES) {
        const end = HEADER_BYTES + held.readUInt32LE(1)
        if (held.length < end) return
        const name = CODES[String.fromCharCode(held.readUInt8(0))]
        assert.ok(name, 'a frame of no known name')
        this.#take({ name, text: held.toString('utf8', HEADER_BYTES, end) })
        held = held.subarray(end)
      }
    })
  }

  #take(frame: Seen): void {
    this.seen.push(frame)
    this.#rung.resolve()
    this.#rung = Promise.withResolvers<void>()
  }

  async #ring(ms: number): Promise<void> {
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, ms)
    await Promise.race([this.#rung.promise, late.promise])
    clearTimeout(timer)
  }
}
