/** How a run was started. */
export interface RunTrigger {
  readonly kind: 'api' | 'webhook' | 'schedule' | 'mcp' | 'child' | 'retry' | 'connection'
  /** Id of what has started it: a schedule, `sch_…`, or the run that was retried. */
  readonly id?: string | undefined
  /** Id of the key or session on whose behalf it was started. */
  readonly actor?: string | undefined
  /**
   * The tick of the schedule, in milliseconds since the Unix epoch: the day that the run is about, however late it
   * starts. A retry keeps it. Undefined for a run that no schedule has started.
   */
  readonly at?: number | undefined
  /** By how many milliseconds the run was started late. */
  readonly late?: number | undefined
  /** True when the tick had been missed, and the run makes up for it. */
  readonly catchUp?: boolean | undefined
  /** True when somebody ran the schedule by hand; `at` is the time when he did. */
  readonly manual?: boolean | undefined
}

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
   * How the run was started. For one of a schedule `trigger.at` is its tick.
   *
   * @example
   * import { context } from 'windlass'
   *
   * export async function run() {
   *   const day = new Date(context.trigger.at ?? Date.now()).toISOString().slice(0, 10)
   *   return `report of ${day}`
   * }
   */
  readonly trigger: RunTrigger
  /**
   * Aborts when the run is cancelled or has run out of time, and when its agent is being stopped, so that the run goes
   * on elsewhere; `signal.reason` says which: a `CancelledError`, `TimedOutError` or `AgentStoppedError`. What is left
   * then is the grace period (10 s unless the descriptor says otherwise). Hand it to whatever takes a signal:
   * `fetch(url, { signal: context.signal })`. A step that ends early for it must throw, as what it returns is kept.
   */
  readonly signal: AbortSignal
}
