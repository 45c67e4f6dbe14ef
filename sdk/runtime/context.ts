import { runtime } from './bridge.ts'

/** Facts about the run that is being executed. The second parameter of `run`, and importable as `context`. */
export interface RunContext {
  /** The run's id, `run_…`. Stable across attempts: good as an idempotency key towards other systems. */
  readonly runId: string
  /** 1 at first; one more each time the program had to start again from the top because its process was lost. */
  readonly attempt: number
  /** Slug of the organization that owns the run. */
  readonly org: string
  /** What is executed: the workflow's slug and the version of it. */
  readonly workflow: { readonly slug: string; readonly version: number }
  /** Name of the environment that the run was triggered in, or null for the organization's base. */
  readonly environment: string | null
  /**
   * Aborts when the run is cancelled or has run out of time; what is left then is the grace period (10 s unless the descriptor
   * says otherwise). Hand it to whatever takes a signal: `fetch(url, { signal: context.signal })`.
   */
  readonly signal: AbortSignal
}

/**
 * The context of the run in progress, for code that is too deep down to be handed it as a parameter.
 * Reading a field outside of a run throws, so read it inside of functions and not while the module loads in a unit test.
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
