import type { RunContext } from './run-context.ts'
import type { Waits } from './waits.ts'

/** What the process offers to the SDK while it executes a program. */
export interface Runtime {
  /** The run in progress, null between runs and for what a former run has left behind. */
  readonly context: RunContext | null
  /** Appends an event to the run's log; `dataText` is its data as JSON. */
  emit(channel: 'phase' | 'log', dataText: string): void
  /** What the program may put into an event, in bytes of JSON. */
  readonly eventDataBytes: number
  /** The journal of the run in progress, loaded at first use. Undefined where there is no context. */
  waits(): Waits | undefined
}

// The host is CommonJS and bundles load the SDK as an ES module: a registered symbol joins them whichever copy is
// loaded.
const KEY = Symbol.for('windlass.runtime')

/** The runtime of this process, or undefined where the program is executed by hand, as in a unit test. */
export function runtime(): Runtime | undefined {
  return Reflect.get(globalThis, KEY) as Runtime | undefined
}

export function provideRuntime(offered: Runtime): void {
  Object.defineProperty(globalThis, KEY, { value: offered, configurable: true })
}

/** The journal for a call of `what`; undefined where the program is executed by hand. */
export function waitsFor(what: string): Waits | undefined {
  const host = runtime()
  if (!host) return undefined
  const waits = host.waits()
  if (waits) return waits
  throw new Error(`${what} was called outside of a run. Call it inside of run(), before run() has returned.`)
}
