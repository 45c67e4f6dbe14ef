/**
 * What a workflow program imports. A program is a module that exports `run(input, context)`; what it returns is the run's output.
 *
 * @example
 * import { phase, log, type RunContext } from 'windlass'
 *
 * export async function run(input: { name: string }, context: RunContext) {
 *   phase('greet')
 *   log(`attempt ${context.attempt}`)
 *   return { greeting: `Hello, ${input.name}` }
 * }
 */
export { context } from './runtime/context.ts'
export type { RunContext } from './runtime/context.ts'
export { log } from './runtime/log.ts'
export type { Log, LogFields } from './runtime/log.ts'
export { phase } from './runtime/phase.ts'
export { CancelledError, TimedOutError } from './runtime/stop-errors.ts'
