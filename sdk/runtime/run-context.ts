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
   * Aborts when the run is cancelled or has run out of time; what is left then is the grace period (10 s unless the
   * descriptor says otherwise). Hand it to whatever takes a signal: `fetch(url, { signal: context.signal })`.
   */
  readonly signal: AbortSignal
}
