/**
 * What a workflow program imports. A program is a module that exports `run(input, context)`; what it returns is the
 * run's output.
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
export type { ConnectionEvent } from './runtime/connection-event.ts'
export { context } from './runtime/context.ts'
export type { Duration } from './runtime/duration.ts'
export type { FromSchema, JsonSchema } from './runtime/from-schema.ts'
export { log } from './runtime/log.ts'
export type { Log, LogFields } from './runtime/log.ts'
export { phase } from './runtime/phase.ts'
export { requestInput } from './runtime/request-input.ts'
export type { InputRequest } from './runtime/request-input.ts'
export type { RunContext, RunTrigger } from './runtime/run-context.ts'
export { sleep } from './runtime/sleep.ts'
export type { SleepTime } from './runtime/sleep.ts'
export { step } from './runtime/step.ts'
export { AgentStoppedError, CancelledError, TimedOutError } from './runtime/stop-errors.ts'
export { CallRefusedError, InputTimedOutError, RunCancelledError, RunFailedError } from './runtime/wait-errors.ts'
export type { RunFailure } from './runtime/wait-errors.ts'
export { workflows } from './runtime/workflows.ts'
export type { CallOptions } from './runtime/workflows.ts'
