import type { RunContext } from './context.ts'

/** What the process offers to the SDK while it executes a program. */
export interface Runtime {
  /** The run in progress, null between runs. */
  context: RunContext | null
  /** Appends an event to the run's log; `dataText` is its data as JSON. */
  emit(channel: 'phase' | 'log', dataText: string): void
}

// The host is CommonJS and bundles load the SDK as an ES module: a registered symbol joins them whichever copy is loaded.
const KEY = Symbol.for('windlass.runtime')

/** The runtime of this process, or undefined where the program is executed by hand, as in a unit test. */
export function runtime(): Runtime | undefined {
  return Reflect.get(globalThis, KEY) as Runtime | undefined
}

export function provideRuntime(offered: Runtime): void {
  Object.defineProperty(globalThis, KEY, { value: offered, configurable: true })
}
