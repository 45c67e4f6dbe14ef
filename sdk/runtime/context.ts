import { runtime } from './bridge.ts'
import type { RunContext } from './run-context.ts'

/**
 * The context of the run in progress, for code that is too deep down to be handed it as a parameter. Reading a field
 * outside of a run throws, so read it inside of functions and not while the module loads in a unit test.
 *
 * @example
 * import { context, log } from 'windlass'
 *
 * export async function run(input: { url: string }) {
 *   const response = await fetch(input.url, { signal: context.signal })
 *   log(`attempt ${context.attempt} got ${response.status}`)
 *   return response.status
 * }
 */
export const context: RunContext = {
  get runId() {
    return current('runId').runId
  },
  get attempt() {
    return current('attempt').attempt
  },
  get org() {
    return current('org').org
  },
  get workflow() {
    return current('workflow').workflow
  },
  get environment() {
    return current('environment').environment
  },
  get trigger() {
    return current('trigger').trigger
  },
  get signal() {
    return current('signal').signal
  },
}

function current(field: keyof RunContext): RunContext {
  const found = runtime()?.context
  if (found) return found
  throw new Error(
    `context.${field} was read outside of a run. Read it inside run(), or inside a function that run() calls; ` +
      'in a unit test use the second parameter of run(input, context) and pass an object of your own.',
  )
}
