// Written by deploy/tools/sdk-types.ts; `npx node deploy/tools/sdk-types.ts` writes it anew.
/// <reference types="node" />
/** One function for each operation of the service. */
export interface Client extends Follows {
  readonly workflows: {
    /** List the workflows of an org, newest first. */
    list(
      args?: {
        org?: string
        /** Only those that are deleted and can be restored. Takes the role admin and `workflow:delete`. */
        deleted?: boolean
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      workflows: Array<Workflow>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Deploy a new workflow from its files. */
    create(
      args: {
        org?: string
        /**
         * All files of the package: `workflow.jsonc`, the entry that exports `run`, whatever it imports, README and
         * skills.
         */
        files: Array<SourceFile>
      },
      options?: CallOptions,
    ): Promise<{
      workflow: Workflow
      version: WorkflowVersion
    }>
    /** Get a workflow with the files and schemas of its current version. */
    get(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
      },
      options?: CallOptions,
    ): Promise<{
      workflow: Workflow
      version: WorkflowVersion
      files: Array<SourceFile>
    }>
    /** Get one file of a workflow, a long one in parts. */
    file(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** Relative, with `/`, as in `lib/parse.ts`. */
        path: string
        /** A version other than the current one. */
        version?: number
        /** Characters before the part; `nextOffset` of the one before. */
        offset?: number
      },
      options?: CallOptions,
    ): Promise<{
      file: SourceFile
      version: number
      part: Part
    }>
    /** Deploy changed files as a new version and make it current. */
    update(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /**
         * All files of the package: `workflow.jsonc`, the entry that exports `run`, whatever it imports, README and
         * skills.
         */
        files?: Array<SourceFile>
        /** In place of `files`: only those that are new, change or go. The others stay as they are in `baseVersion`. */
        changes?: Array<FileChange>
        /** The version that was read before; wanted with `changes`. When another is current: `CONFLICT`. */
        baseVersion?: number
      },
      options?: CallOptions,
    ): Promise<{
      workflow: Workflow
      version: WorkflowVersion
    }>
    /** Delete a workflow. It can be restored for 30 days; runs that exist go on. */
    delete(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** What becomes of its unfinished runs: they go on, or are cancelled. */
        runs?: 'keep' | 'cancel'
      },
      options?: CallOptions,
    ): Promise<void>
    /** Bring a deleted workflow back, with its versions. */
    restore(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** Another slug than it had, for instance as that is taken by now. */
        slug?: string
      },
      options?: CallOptions,
    ): Promise<{
      workflow: Workflow
    }>
    /** Let no run of a workflow start until it is enabled. Runs that exist go on. */
    disable(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
      },
      options?: CallOptions,
    ): Promise<{
      workflow: Workflow
    }>
    /** Let runs of a disabled workflow start again. */
    enable(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
      },
      options?: CallOptions,
    ): Promise<{
      workflow: Workflow
    }>
    /** List the versions of a workflow, newest first. */
    listVersions(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      versions: Array<WorkflowVersion>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Deploy files as a new version without making it current. */
    createVersion(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /**
         * All files of the package: `workflow.jsonc`, the entry that exports `run`, whatever it imports, README and
         * skills.
         */
        files?: Array<SourceFile>
        /** In place of `files`: only those that are new, change or go. The others stay as they are in `baseVersion`. */
        changes?: Array<FileChange>
        /** The version that `changes` are made to, which need not be the current one; wanted with them. */
        baseVersion?: number
      },
      options?: CallOptions,
    ): Promise<{
      version: WorkflowVersion
    }>
    /** Make a version current: roll back or forward. Runs that exist keep theirs. */
    promote(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** Number of the version: 1, 2, 3 … */
        version: number
      },
      options?: CallOptions,
    ): Promise<{
      workflow: Workflow
    }>
    /** Get one version of a workflow with its files. */
    getVersion(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** Number of the version: 1, 2, 3 … */
        version: number
      },
      options?: CallOptions,
    ): Promise<{
      version: WorkflowVersion
      files: Array<SourceFile>
    }>
  }
  readonly runs: {
    /** Start a run. It is queued and executes asynchronously. */
    trigger(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** Any JSON value; becomes the first parameter of `run`. */
        input?: unknown
        /** Whose variables and secrets it gets; left out or null: those of the org. */
        environment?: string | null
        tags?: Array<string>
        /** Higher goes first. */
        priority?: number
        /** A version other than the current one. */
        version?: number
        /** The run enters the queue so many milliseconds from now. */
        delayMs?: number
        /** Also the header `Idempotency-Key`. The same key and request within 24 hours answer the first run with 200. */
        idempotencyKey?: string
      },
      options?: CallOptions,
    ): Promise<{
      run: Run
      /** The call was merged into this run, which waits for further ones: it is the so many-th. Answered with 200. */
      merged?: number
    }>
    /** Start many runs of a workflow, each with a result of its own. */
    batch(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        items: Array<{
          /** Any JSON value; becomes the first parameter of `run`. */
          input?: unknown
          /** Whose variables and secrets it gets; left out or null: those of the org. */
          environment?: string | null
          tags?: Array<string>
          /** Higher goes first. */
          priority?: number
          /** A version other than the current one. */
          version?: number
          /** The run enters the queue so many milliseconds from now. */
          delayMs?: number
          /** Also the header `Idempotency-Key`. The same key and request within 24 hours answer the first run with 200. */
          idempotencyKey?: string
        }>
      },
      options?: CallOptions,
    ): Promise<{
      results: Array<
        | {
            run: Run
            /** The call was merged into this run, which waits for further ones: it is the so many-th. Answered with 200. */
            merged?: number
          }
        | {
            error: {
              code: string
              message: string
              detail?: Record<string, unknown>
            }
          }
      >
    }>
    /** List the runs of an org, newest first. */
    list(
      args?: {
        org?: string
        status?: Array<
          | 'queued'
          | 'pending'
          | 'running'
          | 'completed'
          | 'failed'
          | 'cancelling'
          | 'cancelled'
          | 'sleeping'
          | 'awaiting_input'
          | 'waiting_for_child'
        >
        /** Only those of this workflow: its slug or id. */
        workflow?: string
        /** Only those of this environment: its name or id. */
        environment?: string
        /** Only those that were started so (api, mcp, schedule, webhook, connection, child, retry), or by this id. */
        trigger?: string
        tag?: string
        blocked?: boolean
        createdAfter?: number
        createdBefore?: number
        /** Only those that were deleted; else they are left out. */
        deleted?: boolean
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      runs: Array<Run>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get a run: status, timing, token and cost totals, error. */
    get(
      args: {
        run: string
      },
      options?: CallOptions,
    ): Promise<{
      run: Run
    }>
    /** Get the input that a run was called with. */
    input(
      args: {
        run: string
        /** Given, the JSON text of the value is answered in parts, this one from so many characters on. */
        offset?: number
      },
      options?: CallOptions,
    ): Promise<{
      input: unknown
      part?: Part
    }>
    /** Get the value that a run returned; null when it returned none. */
    output(
      args: {
        run: string
        /** Given, the JSON text of the value is answered in parts, this one from so many characters on. */
        offset?: number
        /** Instead of the output: what a run returned that failed with `OUTPUT_INVALID`, since it does not fit. */
        refused?: boolean
      },
      options?: CallOptions,
    ): Promise<{
      output: unknown
      part?: Part
    }>
    /** Read the event log of a run from a cursor on. */
    events(
      args: {
        run: string
        /** Only events with a greater cursor. */
        since?: number
        /** `agent` and `log` come only when asked for. In a query they are separated by commas. */
        channels?: Array<'lifecycle' | 'phase' | 'output' | 'log' | 'agent'>
        /** Events on a page at most; one with 4 MiB of data (of a tool: 256 KiB) ends before. */
        limit?: number
        /** Where there is no event yet, the answer waits so many milliseconds for one, or for the end of the run. */
        waitMs?: number
      },
      options?: CallOptions,
    ): Promise<{
      events: Array<RunEvent>
      /** True when the run has finished and this page reaches the end of its log. */
      done: boolean
    }>
    /** Follow the event log of a run live, as Server-Sent Events. */
    stream(
      args: {
        run: string
        /** Only events with a greater cursor. */
        since?: number
        /** `agent` and `log` come only when asked for. In a query they are separated by commas. */
        channels?: Array<'lifecycle' | 'phase' | 'output' | 'log' | 'agent'>
      },
      options?: CallOptions,
    ): Promise<Response>
    /** Ask a run to stop. One without a process ends at once, any other when its processes are gone. */
    cancel(
      args: {
        run: string
        reason?: string
      },
      options?: CallOptions,
    ): Promise<{
      run: Run
    }>
    /** Start a new run with the same input and environment. */
    retry(
      args: {
        run: string
        /** A version other than the current one. */
        version?: number
        /** Also the header `Idempotency-Key`. The same key and request within 24 hours answer the first run with 200. */
        idempotencyKey?: string
      },
      options?: CallOptions,
    ): Promise<{
      run: Run
    }>
    /** Delete the input, output and events of a finished run. Its state, times and totals stay. */
    delete(
      args: {
        run: string
      },
      options?: CallOptions,
    ): Promise<void>
    /** List the runs that a run has called, newest first. */
    children(
      args: {
        run: string
        status?: Array<
          | 'queued'
          | 'pending'
          | 'running'
          | 'completed'
          | 'failed'
          | 'cancelling'
          | 'cancelled'
          | 'sleeping'
          | 'awaiting_input'
          | 'waiting_for_child'
        >
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      runs: Array<Run>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Why a run that has not finished is where it is: what it waits for, since when, and who could change that. */
    why(
      args: {
        run: string
      },
      options?: CallOptions,
    ): Promise<{
      why: Why
    }>
    /** Start a blocked run again from the top, as its next attempt. */
    restart(
      args: {
        run: string
      },
      options?: CallOptions,
    ): Promise<{
      run: Run
    }>
    /** Ask all unfinished runs that a filter finds to stop, as a job. */
    bulkCancel(
      args: {
        org?: string
        /** As in the list of runs, joined by "and"; at least one member, or `all`. */
        filter: {
          status?: Array<
            | 'queued'
            | 'pending'
            | 'running'
            | 'completed'
            | 'failed'
            | 'cancelling'
            | 'cancelled'
            | 'sleeping'
            | 'awaiting_input'
            | 'waiting_for_child'
          >
          /** Only those of this workflow: its slug or id. */
          workflow?: string
          /** Only those of this environment: its name or id. */
          environment?: string
          /** Only those that were started so (api, mcp, schedule, webhook, connection, child, retry), or by this id. */
          trigger?: string
          tag?: string
          blocked?: boolean
          createdAfter?: number
          createdBefore?: number
          /** Wanted where no other member is given: all runs of the org are meant. */
          all?: boolean
        }
        reason?: string
        /** The job only counts in `matched` what it would be done to. */
        dryRun?: boolean
      },
      options?: CallOptions,
    ): Promise<{
      job: Job
    }>
    /** Retry all finished runs that a filter finds and that no other run has called, as a job. */
    bulkRetry(
      args: {
        org?: string
        /** As in the list of runs, joined by "and"; at least one member, or `all`. */
        filter: {
          status?: Array<
            | 'queued'
            | 'pending'
            | 'running'
            | 'completed'
            | 'failed'
            | 'cancelling'
            | 'cancelled'
            | 'sleeping'
            | 'awaiting_input'
            | 'waiting_for_child'
          >
          /** Only those of this workflow: its slug or id. */
          workflow?: string
          /** Only those of this environment: its name or id. */
          environment?: string
          /** Only those that were started so (api, mcp, schedule, webhook, connection, child, retry), or by this id. */
          trigger?: string
          tag?: string
          blocked?: boolean
          createdAfter?: number
          createdBefore?: number
          /** Wanted where no other member is given: all runs of the org are meant. */
          all?: boolean
        }
        /** The job only counts in `matched` what it would be done to. */
        dryRun?: boolean
        /** Also the header `Idempotency-Key`. The same key and request answer the first job with 200. */
        idempotencyKey?: string
      },
      options?: CallOptions,
    ): Promise<{
      job: Job
    }>
  }
  readonly schedules: {
    /** Create a schedule that starts runs of a workflow. */
    create(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        name?: string
        /** Five fields: minute, hour, day of month, month, day of week. Exactly one of `cron`, `rate`, `at`. */
        cron?: string
        /** Of `cron`, as IANA names it. Default: UTC. */
        timezone?: string
        /** How often: `15m`, or milliseconds. */
        rate?: string | number
        /** Once, at this time: milliseconds, or ISO 8601 with an offset. */
        at?: number | string
        /** Ticks of a rate lie whole steps behind this time. Default: the creation. */
        anchorAt?: number | string
        /** Whose variables and secrets its runs get; left out or null: those of the org. */
        environment?: string | null
        /** What its runs are called with: any JSON. Default: null. */
        input?: unknown
        /** Each tick is put off by up to so many milliseconds, the same on any coordinator. */
        jitterMs?: number
        /** What fires of ticks that were missed: none, the last, or all, one per second. */
        catchUp?: 'skip' | 'last' | 'all'
        /** What was missed longer ago than so many milliseconds is not caught up. */
        catchUpWindowMs?: number
        /** What a tick does while a run of it is unfinished: start another, start none, or cancel it and start another. */
        overlap?: 'allow' | 'skip' | 'cancel'
        enabled?: boolean
        /**
         * Also the header `Idempotency-Key`. The same key and request within 24 hours answer the first schedule with 200.
         */
        idempotencyKey?: string
      },
      options?: CallOptions,
    ): Promise<{
      schedule: Schedule
    }>
    /** List the schedules of an org, newest first. */
    list(
      args?: {
        org?: string
        /** Only those of this workflow: its slug or id. */
        workflow?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      schedules: Array<Schedule>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get a schedule with its next five times and its last run. */
    get(
      args: {
        schedule: string
      },
      options?: CallOptions,
    ): Promise<{
      schedule: Schedule
    }>
    /** Change a schedule, pause it or let it go on. Of one of the descriptor only `enabled` changes here. */
    update(
      args: {
        schedule: string
        name?: string | null
        /** Five fields: minute, hour, day of month, month, day of week. Exactly one of `cron`, `rate`, `at`. */
        cron?: string
        /** Of `cron`, as IANA names it. Default: UTC. */
        timezone?: string
        /** How often: `15m`, or milliseconds. */
        rate?: string | number
        /** Once, at this time: milliseconds, or ISO 8601 with an offset. */
        at?: number | string
        /** Ticks of a rate lie whole steps behind this time. Default: the creation. */
        anchorAt?: number | string
        /** Whose variables and secrets its runs get; null: those of the org. */
        environment?: string | null
        /** What its runs are called with: any JSON. Default: null. */
        input?: unknown
        /** Each tick is put off by up to so many milliseconds, the same on any coordinator. */
        jitterMs?: number
        /** What fires of ticks that were missed: none, the last, or all, one per second. */
        catchUp?: 'skip' | 'last' | 'all'
        /** What was missed longer ago than so many milliseconds is not caught up. */
        catchUpWindowMs?: number
        /** What a tick does while a run of it is unfinished: start another, start none, or cancel it and start another. */
        overlap?: 'allow' | 'skip' | 'cancel'
        /** False pauses it: what ticks meanwhile is skipped. */
        enabled?: boolean
      },
      options?: CallOptions,
    ): Promise<{
      schedule: Schedule
    }>
    /** Delete a schedule. Runs that it has started go on. */
    delete(
      args: {
        schedule: string
      },
      options?: CallOptions,
    ): Promise<void>
    /** Start a run as the schedule would, now. */
    run(
      args: {
        schedule: string
        /** Any JSON in place of the input of the schedule. */
        input?: unknown
        /** Also the header `Idempotency-Key`. The same key and request within 24 hours answer the first run with 200. */
        idempotencyKey?: string
      },
      options?: CallOptions,
    ): Promise<{
      run: Run
    }>
    /** List the ticks of which no run came, or that fired late, as ranges, the newest first. */
    ticks(
      args: {
        schedule: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      ticks: Array<ScheduleGap>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Why a schedule starts no runs, or when it starts the next. */
    why(
      args: {
        schedule: string
      },
      options?: CallOptions,
    ): Promise<{
      why: ScheduleWhy
    }>
  }
  readonly jobs: {
    /** List what is, or was, done to many runs at once, newest first. */
    list(
      args?: {
        org?: string
        status?: 'running' | 'completed' | 'cancelled' | 'failed'
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      jobs: Array<Job>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get a job: how far it is, and what it could not do. */
    get(
      args: {
        job: string
      },
      options?: CallOptions,
    ): Promise<{
      job: Job
    }>
    /** Stop a job. What it has done to runs stays done. */
    cancel(
      args: {
        job: string
      },
      options?: CallOptions,
    ): Promise<{
      job: Job
    }>
  }
  readonly events: {
    /** Follow what happens to all runs of an org live, as Server-Sent Events. */
    stream(
      args?: {
        org?: string
        /** The `id` of the last event that was read; left out: from now on. */
        since?: string
      },
      options?: CallOptions,
    ): Promise<Response>
  }
  readonly inputs: {
    /** List the questions that runs ask, newest first; the open ones unless a status is named. */
    list(
      args?: {
        org?: string
        status?: Array<'open' | 'answered' | 'timed_out' | 'closed'>
        run?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      inputs: Array<PendingInput>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get a question: its prompt, the schema of its answer and, when it is answered, the answer. */
    get(
      args: {
        input: string
      },
      options?: CallOptions,
    ): Promise<{
      input: PendingInput
    }>
    /** Answer a question. The first answer counts; the run continues with it. */
    respond(
      args: {
        input: string
        /** Any JSON that fits the schema of the question. */
        answer: unknown
      },
      options?: CallOptions,
    ): Promise<{
      input: PendingInput
    }>
  }
  readonly environments: {
    /** List the environments of an org. */
    list(
      args?: {
        org?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      environments: Array<Environment>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Create an environment. It inherits the variables and secrets of the org. */
    create(
      args: {
        org?: string
        name: string
      },
      options?: CallOptions,
    ): Promise<{
      environment: Environment
    }>
    /** Delete an environment with its variables and secrets. Refused while unfinished runs use it. */
    delete(
      args: {
        org?: string
        /** Name or id of an environment. */
        environment: string
      },
      options?: CallOptions,
    ): Promise<void>
  }
  readonly variables: {
    /** List the variables of the org, or of one environment without what it inherits. */
    list(
      args?: {
        org?: string
        /** Name or id of an environment; left out: the org itself. */
        environment?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      variables: Array<Variable>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Set a variable. Runs that have started keep what they had. */
    set(
      args: {
        org?: string
        /** Letters, digits and `_`. Names that the runtime needs (PATH, NODE_…, WINDLASS_…) are refused. */
        name: string
        value: string
        /** Name or id of an environment; left out: the org itself. */
        environment?: string
      },
      options?: CallOptions,
    ): Promise<{
      variable: Variable
    }>
    /** Delete a variable. */
    delete(
      args: {
        org?: string
        name: string
        /** Name or id of an environment; left out: the org itself. */
        environment?: string
      },
      options?: CallOptions,
    ): Promise<void>
  }
  readonly secrets: {
    /** List the names of the secrets of the org, or of one environment without what it inherits. */
    list(
      args?: {
        org?: string
        /** Name or id of an environment; left out: the org itself. */
        environment?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      secrets: Array<SecretName>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Set a secret. Its value is not shown again; each process that starts from now on gets it. */
    set(
      args: {
        org?: string
        /** Letters, digits and `_`. Names that the runtime needs (PATH, NODE_…, WINDLASS_…) are refused. */
        name: string
        /** Never shown again; at most 64 KiB. */
        value: string
        /** Name or id of an environment; left out: the org itself. */
        environment?: string
      },
      options?: CallOptions,
    ): Promise<{
      secret: SecretName
    }>
    /** Delete a secret. */
    delete(
      args: {
        org?: string
        name: string
        /** Name or id of an environment; left out: the org itself. */
        environment?: string
      },
      options?: CallOptions,
    ): Promise<void>
  }
  readonly webhooks: {
    /** Get the webhook of a workflow: where other systems post to start it. */
    get(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
      },
      options?: CallOptions,
    ): Promise<{
      webhook: Webhook
    }>
    /** Set how deliveries at the webhook of a workflow prove where they come from. */
    set(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** A signature over the body, or the secret itself in a header. */
        auth: 'hmac' | 'bearer'
      },
      options?: CallOptions,
    ): Promise<{
      webhook: Webhook
    }>
    /** Make a new secret for the webhook of a workflow, and show it once. */
    rotate(
      args: {
        org?: string
        /** Slug or id of a workflow. */
        workflow: string
        /** How long the secret of before serves as well; 0 ends it and all former ones at once. */
        overlapMs?: number
      },
      options?: CallOptions,
    ): Promise<{
      webhook: Webhook
      secret: string
    }>
  }
  readonly connections: {
    /** Create a connection: an address where a provider posts what happens there. */
    create(
      args: {
        org?: string
        /** Unique in the org. `connections` of descriptors name it. */
        name: string
        /** Whose scheme of signatures it is; `hmac` and `bearer` for all others. */
        kind: 'github' | 'stripe' | 'slack' | 'standard-webhooks' | 'hmac' | 'bearer'
        /** Never shown again. Left out: one is made. */
        secret?: string
        /** Name or id of an environment. */
        environment?: string
        hmac?: {
          /** Header with the signature. */
          header: string
          /** How the signature is written. */
          encoding: 'hex' | 'base64'
          /** What stands in front of it. */
          prefix?: string
          /** Hash of the HMAC. */
          algorithm?: 'sha256' | 'sha1' | 'sha512'
          /** The text that is signed, with {body}, {timestamp}, {id}, {method} and {url} in their places. */
          signed?: string
          /** Header with the time of signing: seconds, milliseconds or ISO 8601. */
          timestampHeader?: string
          /** Header with the id of the delivery. */
          idHeader?: string
          /** How old or how early a delivery with a time may be. */
          toleranceMs?: number
        }
        bearer?: {
          /** Header with the secret. */
          header?: string
          /** What stands in front of it. */
          prefix?: string
        }
        /** A header, or a field of the payload by its path with dots. */
        event?:
          | {
              /** Name of the header. */
              header: string
            }
          | {
              /** Path of the field, with dots. */
              field: string
            }
        /** A header, or a field of the payload by its path with dots. */
        dedupe?:
          | {
              /** Name of the header. */
              header: string
            }
          | {
              /** Path of the field, with dots. */
              field: string
            }
      },
      options?: CallOptions,
    ): Promise<{
      connection: Connection
      secret: string
    }>
    /** List the connections of an org. */
    list(
      args?: {
        org?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      connections: Array<Connection>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get a connection. */
    get(
      args: {
        connection: string
      },
      options?: CallOptions,
    ): Promise<{
      connection: Connection
    }>
    /** Rename a connection, or pause it. */
    update(
      args: {
        connection: string
        /** Unique in the org. `connections` of descriptors name it. */
        name?: string
        /** False: deliveries are recorded and start nothing. */
        enabled?: boolean
      },
      options?: CallOptions,
    ): Promise<{
      connection: Connection
    }>
    /** Delete a connection. Its address is gone for good; its deliveries stay. */
    delete(
      args: {
        connection: string
      },
      options?: CallOptions,
    ): Promise<void>
    /** Set the secret of a connection, or make a new one and show it once. */
    setSecret(
      args: {
        connection: string
        /** Never shown again. Left out: one is made. */
        secret?: string
        /** How long the secret of before serves as well; 0 ends it and all former ones at once. */
        overlapMs?: number
      },
      options?: CallOptions,
    ): Promise<{
      connection: Connection
      secret: string
    }>
    /** Ask what a delivery would start, without starting it. */
    test(
      args: {
        connection: string
        /** As the provider calls it. */
        event?: string | null
        /** Any JSON, by which filters are tried. */
        payload?: unknown
      },
      options?: CallOptions,
    ): Promise<{
      test: {
        hasSecret: boolean
        enabled: boolean
        /** `triggered` where a run would be started. */
        outcome: string
        reason: string | null
        matches: Array<{
          workflow: string
          outcome: string
          reason: string | null
        }>
      }
    }>
    /** List what came in at a connection, newest first. */
    deliveries(
      args: {
        connection: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      deliveries: Array<DeliverySummary>
      /** Null on the last page. */
      nextCursor: string | null
    }>
  }
  readonly deliveries: {
    /** List what came in at webhooks and connections, newest first. */
    list(
      args?: {
        org?: string
        /** Slug or id of a workflow. */
        workflow?: string
        /** Name or id of a connection. */
        connection?: string
        /** Only those that ended so. */
        outcome?:
          | 'triggered'
          | 'duplicate'
          | 'disabled'
          | 'invalid_input'
          | 'too_large'
          | 'filtered'
          | 'unmatched'
          | 'handshake'
          | 'rate_limited'
          | 'unverified'
        /** Milliseconds since the Unix epoch; itself not counted in. */
        createdAfter?: number
        /** Milliseconds since the Unix epoch; itself not counted in. */
        createdBefore?: number
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      deliveries: Array<DeliverySummary>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get a delivery with its headers, the beginning of its payload, and what became of it. */
    get(
      args: {
        delivery: string
      },
      options?: CallOptions,
    ): Promise<{
      delivery: Delivery
    }>
    /** Get the payload of a delivery, byte for byte and with its type as it came. */
    payload(
      args: {
        delivery: string
      },
      options?: CallOptions,
    ): Promise<Response>
    /** Take a delivery once more, byte for byte, by what is deployed now. */
    replay(
      args: {
        delivery: string
        /** True: although it does not verify. For a session of an admin only. */
        unverified?: boolean
        /**
         * Also the header `Idempotency-Key`. The same key and request within 24 hours answer the first delivery with 200.
         */
        idempotencyKey?: string
      },
      options?: CallOptions,
    ): Promise<{
      delivery: Delivery
    }>
  }
  readonly pools: {
    /** List the runner pools of an org. */
    list(
      args?: {
        org?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      runnerPools: Array<RunnerPool>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get one runner pool with its settings. */
    get(
      args: {
        /** Name or id of a runner pool. */
        pool: string
      },
      options?: CallOptions,
    ): Promise<{
      runnerPool: RunnerPool
    }>
    /** Create a runner pool. */
    create(
      args: {
        org?: string
        name: string
        settings?: {
          /**
           * `process`: a process group of its own, in a cgroup where there are any. `bubblewrap`: its own view of the file
           * system besides.
           */
          isolation?: 'process' | 'bubblewrap'
          network?: 'host' | 'none'
          reassignAfterMs?: number | null
          slots?: number | null
          labels?: Array<string>
          limits?: {
            memoryMb?: number | null
            cpus?: number | null
            processes?: number | null
            openFiles?: number | null
            diskMb?: number | null
          }
          parkedMs?: number | null
          drainMs?: number | null
        }
      },
      options?: CallOptions,
    ): Promise<{
      runnerPool: RunnerPool
    }>
    /** Change the settings of a runner pool. */
    update(
      args: {
        /** Name or id of a runner pool. */
        pool: string
        settings: {
          /**
           * `process`: a process group of its own, in a cgroup where there are any. `bubblewrap`: its own view of the file
           * system besides.
           */
          isolation?: 'process' | 'bubblewrap'
          network?: 'host' | 'none'
          reassignAfterMs?: number | null
          slots?: number | null
          labels?: Array<string>
          limits?: {
            memoryMb?: number | null
            cpus?: number | null
            processes?: number | null
            openFiles?: number | null
            diskMb?: number | null
          }
          parkedMs?: number | null
          drainMs?: number | null
        }
      },
      options?: CallOptions,
    ): Promise<{
      runnerPool: RunnerPool
    }>
    /** Delete an empty runner pool with its registration tokens. */
    delete(
      args: {
        /** Name or id of a runner pool. */
        pool: string
      },
      options?: CallOptions,
    ): Promise<void>
    /** How much work waits in a pool and how much room there is: what an autoscaler asks. */
    demand(
      args: {
        org?: string
        /** Name or id of a runner pool. */
        pool: string
      },
      options?: CallOptions,
    ): Promise<{
      demand: PoolDemand
    }>
    /** Mint a token by which an agent joins the pool. It is shown once. */
    createToken(
      args: {
        /** Name or id of a runner pool. */
        pool: string
        reusable?: boolean
        /** How often it serves: once, or 100 times when `reusable`; more than 1 wants `reusable`. */
        uses?: number
        /** How long it serves: at most 24 h; 15 min by default. */
        ttlMs?: number
      },
      options?: CallOptions,
    ): Promise<{
      registrationToken: {
        id: string
        /** Shown once. */
        token: string
        uses: number
        expiresAt: number
      }
    }>
    /** List the registration tokens of a pool that still serve, newest first, without the tokens themselves. */
    listTokens(
      args: {
        /** Name or id of a runner pool. */
        pool: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      registrationTokens: Array<RegistrationToken>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Revoke a registration token. Agents that have joined by it stay. */
    revokeToken(
      args: {
        token: string
      },
      options?: CallOptions,
    ): Promise<void>
  }
  readonly runners: {
    /** List the runners of an org. */
    list(
      args?: {
        org?: string
        /** Only those of this pool: its name or id. */
        pool?: string
        /** Online: polled or heard of within 60 s. */
        status?: 'online' | 'offline'
        /** Only those that are so. */
        intake?: 'open' | 'cordoned' | 'draining' | 'drained' | 'revoked'
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      runners: Array<Runner>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Get one runner. */
    get(
      args: {
        runner: string
      },
      options?: CallOptions,
    ): Promise<{
      runner: Runner
    }>
    /** What a drain of the runner would meet, or what it still waits for. */
    plan(
      args: {
        runner: string
      },
      options?: CallOptions,
    ): Promise<{
      plan: DrainPlan
    }>
    /** Give a runner no new work. */
    cordon(
      args: {
        runner: string
        /** For the audit log and whoever asks why. */
        reason?: string
        /** Only if `intake.epoch` is still this; else `CONFLICT`, and nothing changes. */
        epoch?: number
      },
      options?: CallOptions,
    ): Promise<{
      runner: Runner
    }>
    /** Empty a runner: no new work, what waits moves, what executes ends. */
    drain(
      args: {
        runner: string
        /** From now on; 1 h by default. */
        deadlineMs?: number
        /** Of what still executes at the deadline: `cancel` it, or `leave` it to its end. */
        onDeadline?: 'cancel' | 'leave'
        /** For the audit log and whoever asks why. */
        reason?: string
        /** Only if `intake.epoch` is still this; else `CONFLICT`, and nothing changes. */
        epoch?: number
      },
      options?: CallOptions,
    ): Promise<{
      runner: Runner
    }>
    /** Give a runner work again: undoes cordon, drain and quarantine. */
    resume(
      args: {
        runner: string
        /** For the audit log and whoever asks why. */
        reason?: string
        /** Only if `intake.epoch` is still this; else `CONFLICT`, and nothing changes. */
        epoch?: number
      },
      options?: CallOptions,
    ): Promise<{
      runner: Runner
    }>
    /** Shut a runner out for good: its identity and the tokens of its runs are dead within 5 s. */
    revoke(
      args: {
        runner: string
        /** For the audit log and whoever asks why. */
        reason?: string
      },
      options?: CallOptions,
    ): Promise<{
      runner: Runner
    }>
    /** Forget a runner that is offline or revoked and has no runs; `force` revokes it first. */
    deregister(
      args: {
        runner: string
        /** Revokes it first, whatever it executes. */
        force?: boolean
      },
      options?: CallOptions,
    ): Promise<void>
  }
  readonly keys: {
    /** List the API keys of an org, newest first, without their secret part. */
    list(
      args?: {
        org?: string
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      apiKeys: Array<ApiKey>
      /** Null on the last page. */
      nextCursor: string | null
    }>
    /** Make an API key. The whole key is in this answer and nowhere else. */
    create(
      args: {
        org?: string
        name: string
        /** At most that of the session. */
        role: 'viewer' | 'member' | 'admin' | 'owner'
        scopes?: Array<
          | 'workflow:read'
          | 'workflow:create'
          | 'workflow:update'
          | 'workflow:delete'
          | 'workflow:trigger'
          | 'workflow_version:read'
          | 'workflow_version:create'
          | 'run:read'
          | 'run:trigger'
          | 'run:cancel'
          | 'run:delete'
          | 'inference:invoke'
          | 'audit_log:read'
          | 'billing:read'
        >
        /** Milliseconds since the Unix epoch; left out: never. */
        expiresAt?: number
      },
      options?: CallOptions,
    ): Promise<{
      apiKey: ApiKey
      /** Shown once. */
      key: string
    }>
    /** Revoke an API key. It stops to serve within a second; again is no error. */
    revoke(
      args: {
        org?: string
        key: string
      },
      options?: CallOptions,
    ): Promise<{
      /** How many schedules it has made that go on; their runs count for it still. */
      schedules: number
      /** How many registration tokens that it has made were revoked with it. */
      registrationTokens: number
      /** How many bulk jobs that it had under way were cancelled with it. What they have done stays done. */
      jobs: number
    }>
  }
  readonly orgs: {
    /** Get an org. */
    get(
      args?: {
        org?: string
      },
      options?: CallOptions,
    ): Promise<{
      org: Org
    }>
  }
  readonly retention: {
    /** Get for how many days the org keeps runs that have ended, and deliveries. */
    get(
      args?: {
        org?: string
      },
      options?: CallOptions,
    ): Promise<{
      retention: Retention
    }>
    /** Change for how many days the org keeps runs that have ended, and deliveries. What is older is deleted. */
    update(
      args?: {
        org?: string
        /**
         * So many days after the end of a run its input, output, events and journal are deleted, as by `runs.delete`.
         * Null: as long as the service keeps them.
         */
        runsDays?: number | null
        /** Days after which a delivery is deleted with its payload. Null: as long as the service keeps them. */
        deliveriesDays?: number | null
      },
      options?: CallOptions,
    ): Promise<{
      retention: Retention
    }>
  }
  readonly account: {
    /** Whom a credential stands for: its kind, org, role and scopes. */
    get(
      args?: Record<string, never>,
      options?: CallOptions,
    ): Promise<{
      me: {
        credential: Credential
        org: Org
      }
    }>
  }
  readonly audit: {
    /** List what was changed in an org, newest first. */
    list(
      args?: {
        org?: string
        /** Id of a credential, as in `actor.id`. */
        actor?: string
        /** Operations such as `keys.revoke`, or all of a group as `keys.*`. */
        action?: Array<string>
        /** Id of what was changed. */
        target?: string
        /** After; milliseconds since the Unix epoch. */
        createdAfter?: number
        /** Before; milliseconds since the Unix epoch. */
        createdBefore?: number
        /** Items on a page. */
        limit?: number
        /** `nextCursor` of the page before. */
        cursor?: string
      },
      options?: CallOptions,
    ): Promise<{
      auditEntries: Array<AuditEntry>
      /** Null on the last page. */
      nextCursor: string | null
    }>
  }
  readonly service: {
    /** Is the process up? */
    health(
      args?: Record<string, never>,
      options?: CallOptions,
    ): Promise<{
      status: 'ok'
      version: string
      uptimeMs: number
      /** The release of the time zone data by which schedules tick. */
      tz: string
      /** The setting WINDLASS_BASE_URL: where addresses of webhooks and connections begin; null while it is unset. */
      baseUrl: string | null
    }>
    /** Can it serve: does the database answer? */
    ready(
      args?: Record<string, never>,
      options?: CallOptions,
    ): Promise<{
      status: 'ready'
    }>
    /** Figures for Prometheus: from this machine, or with WINDLASS_METRICS_TOKEN as bearer. */
    metrics(args?: Record<string, never>, options?: CallOptions): Promise<Response>
    /** This API as an OpenAPI 3.1 document. */
    openapi(args?: Record<string, never>, options?: CallOptions): Promise<Record<string, unknown>>
    /** This API as a page to read and to try; it loads nothing from elsewhere. */
    docs(args?: Record<string, never>, options?: CallOptions): Promise<Response>
    /** A script or style of the page at /v1/docs. */
    docsFile(
      args: {
        file: string
      },
      options?: CallOptions,
    ): Promise<Response>
    /**
     * A shell script that installs the agent of this version from here: `curl -fsSL <address>/install.sh | sh -s --
     * --token wlr_…`.
     */
    install(args?: Record<string, never>, options?: CallOptions): Promise<Response>
    /** A file to install from: the agent by platform with its checksums, units and recipes, and the packages for npm. */
    download(
      args: {
        file: string
      },
      options?: CallOptions,
    ): Promise<Response>
    /** The JSON Schema of workflow.jsonc, for editors. */
    workflowSchema(args?: Record<string, never>, options?: CallOptions): Promise<Record<string, unknown>>
    /** How /mcp/v1 is protected, as RFC 9728 has it. */
    protectedResource(args?: Record<string, never>, options?: CallOptions): Promise<Record<string, unknown>>
  }
}

export type Channel = 'lifecycle' | 'phase' | 'output' | 'log' | 'agent'

/** What the service refuses with. */
export type FaultCode =
  | 'VALIDATION_FAILED'
  | 'UNAUTHENTICATED'
  | 'UNVERIFIED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'CONFLICT'
  | 'RUN_ALREADY_FINISHED'
  | 'RUN_DELETED'
  | 'RUN_HAS_LIVE_CHILDREN'
  | 'RUN_NOT_FINISHED'
  | 'RUN_NOT_BLOCKED'
  | 'INPUT_CLOSED'
  | 'IDEMPOTENCY_CONFLICT'
  | 'RUNNER_BUSY'
  | 'RUNNER_REVOKED'
  | 'POOL_IN_USE'
  | 'ENVIRONMENT_IN_USE'
  | 'WORKFLOW_DISABLED'
  | 'WORKFLOW_EXISTS'
  | 'SCHEDULE_OF_DESCRIPTOR'
  | 'DELIVERY_UNVERIFIED'
  | 'PAYLOAD_NOT_KEPT'
  | 'STALE_PLACEMENT'
  | 'REGISTRATION_TOKEN_USED'
  | 'PAYLOAD_TOO_LARGE'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'RANGE_NOT_SATISFIABLE'
  | 'UPGRADE_REQUIRED'
  | 'RATE_LIMITED'
  | 'SECRETS_UNAVAILABLE'
  | 'INTERNAL'
  | 'UNAVAILABLE'

export interface Workflow {
  id: string
  org: string
  slug: string
  name: string
  description: string
  /** The version that a trigger runs. */
  version: number
  pool: string
  process: 'fresh' | 'reuse'
  createdAt: number
  updatedAt: number
  /** Since when no run of it starts; null: it is enabled. */
  disabledAt: number | null
  /** Id of the key or session that disabled it. */
  disabledBy: string | null
  /** When it was deleted; null: it is not. */
  deletedAt: number | null
  /** Until when one that is deleted can be restored. */
  purgeAt: number | null
}

export interface SourceFile {
  /** Relative, with `/`, as in `lib/parse.ts`. */
  path: string
  content: string
}

export interface WorkflowVersion {
  id: string
  workflow: {
    id: string
    slug: string
  }
  version: number
  descriptor: Record<string, unknown>
  /** JSON Schema, draft 2020-12. */
  inputSchema: Record<string, unknown>
  /** JSON Schema, draft 2020-12. */
  outputSchema: Record<string, unknown>
  bundleDigest: string
  bundleBytes: number
  warnings: Array<string>
  createdAt: number
  createdBy: string
}

export interface Part {
  /** Characters before it. */
  offset: number
  /** Characters of the whole. */
  chars: number
  /** Where the rest begins; null when nothing is left. */
  nextOffset: number | null
}

export interface FileChange {
  /** Relative, with `/`, as in `lib/parse.ts`. */
  path: string
  /** Its text from now on, as a whole; null takes the file away. */
  content: string | null
}

export interface Run {
  id: string
  org: string
  workflow: {
    id: string
    slug: string
    version: number
  }
  status:
    | 'queued'
    | 'pending'
    | 'running'
    | 'completed'
    | 'failed'
    | 'cancelling'
    | 'cancelled'
    | 'sleeping'
    | 'awaiting_input'
    | 'waiting_for_child'
  trigger: {
    kind: 'api' | 'webhook' | 'schedule' | 'mcp' | 'child' | 'retry' | 'connection'
    /** Of the schedule, of the run that was retried, and so on. */
    id?: string
    actor?: string
    /** The tick of a schedule, for which the run was started: milliseconds since the Unix epoch. */
    at?: number
    /** By how many milliseconds it was started late. */
    late?: number
    /** True when the tick had been missed. */
    catchUp?: boolean
    /** True when somebody ran the schedule by hand; `at` is then. */
    manual?: boolean
  }
  environment: string | null
  tags: Array<string>
  priority: number
  /** Starts at 1; a restart after a crash adds one. */
  attempt: number
  parentRunId: string | null
  rootRunId: string | null
  retryOf: string | null
  pool: {
    id: string
    name: string
  }
  runner: {
    id: string
    name: string
  } | null
  /** What kept the program apart from its host, as in `bubblewrap, own user, cgroup`. */
  isolation: string | null
  /** How the run last lost its process, when it ever did. */
  lost: {
    /** Milliseconds since the Unix epoch. */
    at: number
    attempt: number
    runner: {
      id: string
      name: string
    } | null
    /**
     * What was lost: the program alone, the agent, its machine, or the way to it. `unknown` until the runner is heard
     * of again. `operator`: somebody took it away.
     */
    what: 'program' | 'daemon' | 'host' | 'network' | 'unknown' | 'operator'
    reason: string
    /** When something of the run was last taken from its agent. */
    lastAckAt: number | null
    /** When its agent last renewed its lease. */
    lastRenewalAt: number | null
    /** By how much its lease had been lengthened after an outage of coordinator or database. Null: by nothing. */
    lengthenedMs: number | null
  } | null
  waiting: {
    /** The first of input, child, sleep that is waited for. */
    for: 'sleep' | 'input' | 'child'
    /** Milliseconds since the Unix epoch. */
    since: number
    /** When the earliest timer is due. */
    until?: number
    inputId?: string
    /** At most 100; `/children` has all. */
    childRunIds?: Array<string>
  } | null
  /** Set when a replay met something else than was recorded. */
  blocked: {
    code: 'REPLAY_MISMATCH'
    message: string
    /** What the journal has. */
    expected: string
    /** What the program did in its place. */
    received: string
    /** File and line where it did that. */
    at: string
  } | null
  error: {
    code: string
    message: string
    detail?: Record<string, unknown>
  } | null
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  /** When the run entered the queue last; one with a delay, when it will enter: milliseconds since the Unix epoch. */
  queuedAt: number
  claimedAt: number | null
  startedAt: number | null
  finishedAt: number | null
  /** When its input, output, error, tags and events were deleted. */
  deletedAt: number | null
  /** Milliseconds of execution, over all attempts. A lost one lacks what it had executed since it last waited. */
  computeMs: number
  tokens: {
    input: number
    output: number
    cachedInput: number
    reasoning: number
  }
  /** Metered cost in micro-dollars. */
  costMicros: number
  /** What its descriptor lets one run use. Null: no bound. */
  budget: {
    /** At most so many tokens. Null: no bound. */
    tokens: number | null
    /** At most so many micro-dollars. Null: no bound. */
    costMicros: number | null
    spentTokens: number
    spentMicros: number
    /** For calls that are under way. */
    reservedMicros: number
    onBreach: 'notify' | 'ask' | 'cancel'
  } | null
}

export interface RunEvent {
  /** Counts 1, 2, 3 … within the run, without gaps. */
  cursor: number
  /** When it happened where it happened, in milliseconds since the Unix epoch. */
  at: number
  channel: 'lifecycle' | 'phase' | 'output' | 'log' | 'agent'
  type: string
  data: Record<string, unknown>
}

export interface Why {
  run: string
  status:
    | 'queued'
    | 'pending'
    | 'running'
    | 'completed'
    | 'failed'
    | 'cancelling'
    | 'cancelled'
    | 'sleeping'
    | 'awaiting_input'
    | 'waiting_for_child'
  /** When the run came into its status. */
  since: number
  /** The answer in one sentence. */
  summary: string
  /**
   * The process of the run. `parked`: it waits without a slot. Null: there is none, and any runner of the pool may
   * make one.
   */
  process: {
    place: 'starting' | 'executing' | 'replaying' | 'parked'
    runner: {
      id: string
      name: string
    }
  } | null
  /** How it lost its process before, the last first; 20 at most. */
  losses: Array<{
    /** Milliseconds since the Unix epoch. */
    at: number
    attempt: number
    runner: {
      id: string
      name: string
    } | null
    /**
     * What was lost: the program alone, the agent, its machine, or the way to it. `unknown` until the runner is heard
     * of again. `operator`: somebody took it away.
     */
    what: 'program' | 'daemon' | 'host' | 'network' | 'unknown' | 'operator'
    reason: string
    /** When something of the run was last taken from its agent. */
    lastAckAt: number | null
    /** When its agent last renewed its lease. */
    lastRenewalAt: number | null
    /** By how much its lease had been lengthened after an outage of coordinator or database. Null: by nothing. */
    lengthenedMs: number | null
  }>
  /** Everything that it waits for, the first thing first. */
  causes: Array<{
    code:
      | 'FINISHED'
      | 'BLOCKED'
      | 'NO_RUNNER'
      | 'LABELS_MISSING'
      | 'SLOTS_MISSING'
      | 'RUNNERS_UNFIT'
      | 'RUNNERS_CLOSED'
      | 'RUNNERS_BUSY'
      | 'DATABASE_RESTORED'
      | 'RUNS_AHEAD'
      | 'DELAYED'
      | 'THROTTLED'
      | 'DEBOUNCED'
      | 'RETRY_BACKOFF'
      | 'PUT_OFF'
      | 'CONCURRENCY_LIMIT'
      | 'STARTING'
      | 'EXECUTING'
      | 'RUNNER_SILENT'
      | 'REPORTS_REFUSED'
      | 'SLEEP'
      | 'INPUT'
      | 'CHILD'
      | 'RESUMING'
      | 'CANCELLING'
    /** A sentence for people. */
    message: string
    since: number | null
    /** When it ends by itself; null when it does not, or nobody knows. */
    until: number | null
    /** Who could change it, and how. */
    change: string
    inputId?: string
    childRunId?: string
    runIds?: Array<string>
    /** File and line of the call in the program. */
    at?: string
  }>
  /** Every runner of the pool, for a run that waits for one. */
  runners: Array<{
    id: string
    name: string
    takes: boolean
    /** Why it does not take the run, or that it would. */
    reason: string
  }>
}

export interface Job {
  id: string
  org: string
  /** What is done to the runs. `workflow-delete`: they are cancelled. */
  kind: 'bulk-cancel' | 'bulk-retry' | 'workflow-delete'
  /** As in the list of runs, joined by "and"; at least one member, or `all`. */
  filter: {
    status?: Array<
      | 'queued'
      | 'pending'
      | 'running'
      | 'completed'
      | 'failed'
      | 'cancelling'
      | 'cancelled'
      | 'sleeping'
      | 'awaiting_input'
      | 'waiting_for_child'
    >
    /** Only those of this workflow: its slug or id. */
    workflow?: string
    /** Only those of this environment: its name or id. */
    environment?: string
    /** Only those that were started so (api, mcp, schedule, webhook, connection, child, retry), or by this id. */
    trigger?: string
    tag?: string
    blocked?: boolean
    createdAfter?: number
    createdBefore?: number
    /** Wanted where no other member is given: all runs of the org are meant. */
    all?: boolean
  }
  /** Runs are counted in `matched`, and nothing is done to them. */
  dryRun: boolean
  /** `failed`: it was not done in time; `cancelled`: by somebody, or with the key that had asked for it. */
  status: 'running' | 'completed' | 'cancelled' | 'failed'
  /** Why it was not done, unless somebody has cancelled it. */
  error: string | null
  /** Runs that were found; it grows at first. */
  matched: number
  done: number
  /** Runs to which it could not be done. */
  failed: number
  /** How many of them for which reason, by its code. */
  failures: Record<string, number>
  createdAt: number
  /** A job that is not done by then ends as `failed`. */
  deadlineAt: number
  finishedAt: number | null
}

export interface Schedule {
  id: string
  org: string
  workflow: {
    id: string
    slug: string
  }
  name: string | null
  /** Made over the API, or by the descriptor. */
  source: 'api' | 'descriptor'
  kind: 'cron' | 'rate' | 'at'
  /** When it ticks, in words. */
  words: string
  cron?: string
  /** Of `cron`. */
  timezone?: string
  rateMs?: number
  /** Ticks of a rate lie whole steps behind it. */
  anchorAt?: number
  /** Milliseconds since the Unix epoch. */
  at?: number
  environment: string | null
  /** Null for one of the descriptor, whose environment is looked up by its name at each tick. */
  environmentId: string | null
  input: unknown
  jitterMs: number
  /** What fires of ticks that were missed: none, the last, or all, one per second. */
  catchUp: 'skip' | 'last' | 'all'
  catchUpWindowMs: number
  /** What a tick does while a run of it is unfinished: start another, start none, or cancel it and start another. */
  overlap: 'allow' | 'skip' | 'cancel'
  enabled: boolean
  /** Id of the key or session that paused it. */
  pausedBy: string | null
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  createdBy: string
  /** Milliseconds since the Unix epoch. */
  updatedAt: number
  /** The next tick; null while there is none, see `why`. */
  nextAt: number | null
  /** The next five ticks, without jitter; fewer where they are more than eight years apart. */
  nextTimes: Array<number>
  /** Since when it ticks no more. */
  endedAt: number | null
  /** The newest run that it has started; `at` is its tick. */
  lastRun: {
    id: string
    status:
      | 'queued'
      | 'pending'
      | 'running'
      | 'completed'
      | 'failed'
      | 'cancelling'
      | 'cancelled'
      | 'sleeping'
      | 'awaiting_input'
      | 'waiting_for_child'
    /** Milliseconds since the Unix epoch. */
    at: number
  } | null
}

export interface ScheduleGap {
  /** `missed`: nobody was there to fire them. `skipped`: they were not to, or could not. */
  outcome: 'skipped' | 'missed'
  reason:
    | 'MISSED'
    | 'PAUSED'
    | 'OVERLAP'
    | 'ZONE_UNKNOWN'
    | 'WORKFLOW_DISABLED'
    | 'WORKFLOW_DELETED'
    | 'ENVIRONMENT_GONE'
    | 'POOL_GONE'
    | 'INPUT_INVALID'
    | 'REFUSED'
  /** A sentence for people. */
  message: string
  /** The first of them. */
  from: number
  /** The last of them. */
  to: number
  count: number
  /** The unfinished run that they met. */
  runId: string | null
  /** How many of those that were missed fired late. */
  caughtUp: number
  /** When these did. */
  firedAt: number | null
}

export interface ScheduleWhy {
  schedule: string
  /** `TICKS`: its next tick starts a run. Any other: what keeps it from that. */
  code:
    | 'TICKS'
    | 'PAUSED'
    | 'ENDED'
    | 'ZONE_UNKNOWN'
    | 'WORKFLOW_DISABLED'
    | 'WORKFLOW_DELETED'
    | 'ENVIRONMENT_GONE'
    | 'POOL_GONE'
    | 'INPUT_INVALID'
    | 'REFUSED'
    | 'OVERLAP'
  /** A sentence for people. */
  message: string
  /** Who could change it, and how. */
  change: string
  since: number | null
  nextAt: number | null
  /** The last ticks of which no run came. */
  last: ScheduleGap | null
}

export interface PendingInput {
  id: string
  run: {
    id: string
    workflow: {
      id: string
      slug: string
    }
  }
  /** `closed`: its run has ended, or does not ask any more. */
  status: 'open' | 'answered' | 'timed_out' | 'closed'
  prompt: string
  /** JSON Schema of the answer; null takes any JSON. */
  schema: Record<string, unknown> | boolean | null
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  /** When it times out. */
  dueAt: number | null
  closedAt: number | null
  /** Only when answered; a list leaves out what is larger than 16 KiB. */
  answer?: unknown
  answeredBy: string | null
}

export interface Environment {
  id: string
  org: string
  name: string
  /** Milliseconds since the Unix epoch. */
  createdAt: number
}

export interface Variable {
  name: string
  value: string
  /** Null: of the org, for all of its environments. */
  environment: string | null
  /** Milliseconds since the Unix epoch. */
  updatedAt: number
  updatedBy: string
}

export interface SecretName {
  name: string
  environment: string | null
  /** Milliseconds since the Unix epoch. */
  updatedAt: number
  updatedBy: string
}

export interface Webhook {
  id: string
  /** Where to post. */
  url: string
  /** What is doubtful about `url`; null: nothing. */
  urlNote: string | null
  /** A signature over the body, or the secret itself in a header. */
  auth: 'hmac' | 'bearer'
  /** The header that carries the one or the other. */
  header: string
  environment: string | null
  /** Whether runs get the body, or all of the request. */
  input: 'body' | 'request'
  dedupe:
    | {
        /** Name of the header. */
        header: string
      }
    | {
        /** Path of the field, with dots. */
        field: string
      }
    | null
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  /** Null: nobody has asked for its secret yet. */
  rotatedAt: number | null
  /** Until then a former secret serves as well. */
  previousSecretUntil: number | null
  /** Of one that was verified; may be a minute old. */
  lastDeliveryAt: number | null
}

export interface Connection {
  id: string
  org: string
  name: string
  /** Whose scheme of signatures it is; `hmac` and `bearer` for all others. */
  kind: 'github' | 'stripe' | 'slack' | 'standard-webhooks' | 'hmac' | 'bearer'
  /** Where the provider posts. */
  url: string
  /** What is doubtful about `url`; null: nothing. */
  urlNote: string | null
  /** False: deliveries are recorded and start nothing. */
  enabled: boolean
  environment: string | null
  hmac: Record<string, unknown> | null
  bearer: Record<string, unknown> | null
  event: Record<string, unknown> | null
  dedupe: Record<string, unknown> | null
  /** False: every delivery is refused until a secret is set. */
  hasSecret: boolean
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  createdBy: string
  rotatedAt: number | null
  /** Until then a former secret serves as well. */
  previousSecretUntil: number | null
  /** Of one that was verified; may be a minute old. */
  lastDeliveryAt: number | null
}

export interface DeliverySummary {
  id: string
  source: {
    kind: 'webhook' | 'connection'
    id: string
    /** Slug of the workflow, or name of the connection. */
    name: string | null
  }
  /** Milliseconds since the Unix epoch. */
  receivedAt: number
  /** The first that applies to one of the workflows, in the order of this list. */
  outcome:
    | 'triggered'
    | 'duplicate'
    | 'disabled'
    | 'invalid_input'
    | 'too_large'
    | 'filtered'
    | 'unmatched'
    | 'handshake'
    | 'rate_limited'
    | 'unverified'
  /** Why no run was started, in a sentence. */
  reason: string | null
  event: string | null
  matches: Array<{
    workflow: {
      id: string
      slug: string
    }
    outcome:
      | 'triggered'
      | 'duplicate'
      | 'disabled'
      | 'invalid_input'
      | 'too_large'
      | 'filtered'
      | 'unmatched'
      | 'handshake'
      | 'rate_limited'
      | 'unverified'
    reason: string | null
    /** The run that it started; of a duplicate, the first one. */
    runId: string | null
  }>
  replayOf: string | null
  /** Which try of the provider it was, where it says so; else 1. */
  attempts: number
}

export interface Delivery {
  id: string
  source: {
    kind: 'webhook' | 'connection'
    id: string
    /** Slug of the workflow, or name of the connection. */
    name: string | null
  }
  /** Milliseconds since the Unix epoch. */
  receivedAt: number
  /** The first that applies to one of the workflows, in the order of this list. */
  outcome:
    | 'triggered'
    | 'duplicate'
    | 'disabled'
    | 'invalid_input'
    | 'too_large'
    | 'filtered'
    | 'unmatched'
    | 'handshake'
    | 'rate_limited'
    | 'unverified'
  /** Why no run was started, in a sentence. */
  reason: string | null
  event: string | null
  matches: Array<{
    workflow: {
      id: string
      slug: string
    }
    outcome:
      | 'triggered'
      | 'duplicate'
      | 'disabled'
      | 'invalid_input'
      | 'too_large'
      | 'filtered'
      | 'unmatched'
      | 'handshake'
      | 'rate_limited'
      | 'unverified'
    reason: string | null
    /** The run that it started; of a duplicate, the first one. */
    runId: string | null
  }>
  replayOf: string | null
  /** Which try of the provider it was, where it says so; else 1. */
  attempts: number
  method: string
  query: string
  /** Credentials are `[redacted]`. */
  headers: Record<string, string>
  payload: {
    contentType: string | null
    bytes: number
    kept: 'whole' | 'cut'
    /** Its first 16 KiB; null where it is not text. `deliveries.payload` has all bytes. */
    text: string | null
  }
}

export interface RunnerPool {
  id: string
  org: string
  name: string
  settings: {
    /**
     * `process`: a process group of its own, in a cgroup where there are any. `bubblewrap`: its own view of the file
     * system besides.
     */
    isolation: 'process' | 'bubblewrap'
    /** Whether runs see the network of their host. `none` needs `bubblewrap`. */
    network: 'host' | 'none'
    /**
     * How long a runner may be silent before its runs are handed over. It stops them itself 25 s earlier. Null: as
     * the service is set up, 75 s.
     */
    reassignAfterMs: number | null
    /** Runs that execute at once on a machine. */
    slots: number | null
    /** Carried by every runner of the pool besides its own. */
    labels: Array<string>
    limits: {
      /** Memory in MiB. */
      memoryMb: number | null
      /** Cores; 0.5 is half of one. */
      cpus: number | null
      /** Processes and threads. */
      processes: number | null
      /** Open files of a process. */
      openFiles: number | null
      /** What it may have in its workspace, in MiB; one that goes beyond is ended. */
      diskMb: number | null
    }
    /** How long the process of a run that only waits is kept. */
    parkedMs: number | null
    /** How long a machine that is told to stop lets its runs go on. Null: as the machine is set up. */
    drainMs: number | null
  }
  runners: number
  queuedRuns: number
  createdAt: number
}

export interface PoolDemand {
  pool: {
    id: string
    name: string
  }
  /** Runs that could start now if a runner took them. */
  queuedRuns: number
  /** Slots that they need together. */
  queuedSlots: number
  /** Since when the longest waiting one waits. */
  oldestQueuedAt: number | null
  executingRuns: number
  usedSlots: number
  /** Of runners that are online and take work. */
  slots: number
  freeSlots: number
  runners: {
    online: number
    takingWork: number
    draining: number
    offline: number
  }
  /** How many slots more it takes to start all that is queued. */
  missingSlots: number
  /** The same for each set of labels that queued runs ask for; 50 at most. */
  byLabels: Array<{
    labels: Array<string>
    queuedRuns: number
    queuedSlots: number
    freeSlots: number
  }>
}

export interface RegistrationToken {
  id: string
  pool: {
    id: string
    name: string
  }
  /** How many more agents it lets in. */
  usesLeft: number
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  /** Id of the key or session that made it; it ends when that is revoked. */
  createdBy: string
  /** Milliseconds since the Unix epoch. */
  expiresAt: number
}

export interface Runner {
  id: string
  org: string
  pool: {
    id: string
    name: string
  }
  name: string
  /** Online: polled or heard of within 60 s. */
  status: 'online' | 'offline'
  intake: {
    state: 'open' | 'cordoned' | 'draining' | 'drained' | 'revoked'
    /** Raised by each change. What is given out afterwards was allowed by it. */
    epoch: number
    /** Milliseconds since the Unix epoch. */
    since: number
    /** Who changed it: a person or key, the agent itself as it stops, or the coordinator. */
    by: {
      kind: 'caller' | 'agent' | 'system'
      name: string
    } | null
    reason: string
    /** Of a drain. */
    deadlineAt: number | null
    /** What happens to runs that still execute then: they are cancelled, or left to end. */
    onDeadline: 'cancel' | 'leave' | null
  }
  /** Set while it gets no work because preparing runs failed there again and again. */
  quarantine: {
    /** Milliseconds since the Unix epoch. */
    since: number
    /** Milliseconds since the Unix epoch. */
    until: number
    reason: string
  } | null
  /** What the machine itself says is in the way; empty: nothing. */
  unready: Array<{
    check: string
    message: string
  }>
  /** Its own and those of its pool. */
  labels: Array<string>
  slots: number
  activeRuns: number
  /** What it has. A drain is over when all three are 0. */
  live: {
    offered: number
    executing: number
    parked: number
  }
  /** The first 20 of what it has. */
  currentRuns: Array<string>
  version: string
  protocol: number
  /** Set when the agent is older than the service; the command installs the right one. */
  upgrade: {
    message: string
    command: string
  } | null
  platform: string
  /** Null until the agent has said it. */
  isolation: {
    /**
     * `process`: a process group of its own, in a cgroup where there are any. `bubblewrap`: its own view of the file
     * system besides.
     */
    level: 'process' | 'bubblewrap'
    /** `own`: runs execute as users of their own. `agent`: as the user of the agent, whose files they could read. */
    user: 'own' | 'agent'
    /** Whether memory, CPU and processes are limited and counted by a cgroup. */
    cgroup: boolean
    network: 'host' | 'none'
  } | null
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  lastPollAt: number | null
  lastHeartbeatAt: number | null
  /** When a copy of its state folder last tried to pass for it. */
  copyRefusedAt: number | null
}

export interface DrainPlan {
  runner: string
  epoch: number
  live: Array<{
    run: string
    workflow: string
    status:
      | 'queued'
      | 'pending'
      | 'running'
      | 'completed'
      | 'failed'
      | 'cancelling'
      | 'cancelled'
      | 'sleeping'
      | 'awaiting_input'
      | 'waiting_for_child'
    since: number | null
    /**
     * `finishes`: it executes to its end here. `moves`: it only waits, and goes on elsewhere. `returns-to-queue`: it
     * was offered and has not begun.
     */
    outcome: 'finishes' | 'moves' | 'returns-to-queue'
    /** When its own timeout ends it at the latest. */
    latestEndAt: number | null
  }>
  /** Other runners of the pool that are online and take work. */
  othersTakeWork: number
  /** What waits in the pool. */
  queuedRuns: number
  warnings: Array<string>
}

export interface ApiKey {
  id: string
  org: string
  name: string
  /** The first 10 characters of the key. */
  prefix: string
  role: 'viewer' | 'member' | 'admin' | 'owner'
  /** Empty: everything that the role may do. Otherwise exactly these. */
  scopes: Array<
    | 'workflow:read'
    | 'workflow:create'
    | 'workflow:update'
    | 'workflow:delete'
    | 'workflow:trigger'
    | 'workflow_version:read'
    | 'workflow_version:create'
    | 'run:read'
    | 'run:trigger'
    | 'run:cancel'
    | 'run:delete'
    | 'inference:invoke'
    | 'audit_log:read'
    | 'billing:read'
  >
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  /** Id of the credential that made it, or of the operator. */
  createdBy: string | null
  expiresAt: number | null
  /** To the minute. */
  lastUsedAt: number | null
  revokedAt: number | null
}

export interface Org {
  id: string
  slug: string
  name: string
  createdAt: number
}

export interface Retention {
  /**
   * So many days after the end of a run its input, output, events and journal are deleted, as by `runs.delete`.
   * Null: as long as the service keeps them.
   */
  runsDays: number | null
  /** Days after which a delivery is deleted with its payload. Null: as long as the service keeps them. */
  deliveriesDays: number | null
  /** How long the service keeps runs of any org. Null: for ever. */
  maxRunsDays: number | null
  /** How long the service keeps deliveries of any org. Null: for ever. */
  maxDeliveriesDays: number | null
  /**
   * Before this moment, an hour after its last change, nothing is deleted by what the org has said. Null: it has
   * said nothing.
   */
  actsAt: number | null
}

export interface Credential {
  kind: 'key' | 'session'
  id: string
  name: string
  role: 'viewer' | 'member' | 'admin' | 'owner'
  /** Empty: everything that the role may do. */
  scopes: Array<
    | 'workflow:read'
    | 'workflow:create'
    | 'workflow:update'
    | 'workflow:delete'
    | 'workflow:trigger'
    | 'workflow_version:read'
    | 'workflow_version:create'
    | 'run:read'
    | 'run:trigger'
    | 'run:cancel'
    | 'run:delete'
    | 'inference:invoke'
    | 'audit_log:read'
    | 'billing:read'
  >
}

export interface AuditEntry {
  id: string
  org: string
  /** Milliseconds since the Unix epoch. */
  createdAt: number
  actor: {
    kind: 'key' | 'session' | 'token' | 'operator' | 'system'
    /** Of the credential, or the operator by the name of the system. */
    id: string
    name: string
  }
  via: 'rest' | 'mcp' | 'runner' | 'admin' | 'system'
  requestId: string | null
  /** The operation, as in `keys.revoke`. */
  action: string
  target: {
    type: string
    id: string
    name: string | null
  }
  /** What it was; null when it was not there. */
  before: Record<string, unknown> | null
  /** What it is now; null when it is gone. */
  after: Record<string, unknown> | null
}

export interface OrgEvent {
  /** Where it stands in the stream: `since` of whoever reads on behind it. */
  position: string
  /** When it happened, in milliseconds since the Unix epoch. */
  at: number
  /** As in the log of the run. */
  type: string
  run: string
  /** Slug; null when the run or its workflow is gone. */
  workflow: string | null
  /** Where it stands in the log of the run. */
  cursor: number
  data: Record<string, unknown>
}

/**
 * A client with a function for each operation of the service.
 *
 * @example
 * const client = createClient({ url: 'http://127.0.0.1:8787', apiKey: process.env.WINDLASS_API_KEY, org: 'default' })
 * const { run } = await client.runs.trigger({ workflow: 'hello', input: { name: 'Ada' } })
 * for await (const event of client.follow(run.id)) console.log(event.type)
 */
export declare function createClient(options: ClientOptions): Client

export interface ClientOptions {
  /** The address of the service, such as `http://127.0.0.1:8787`. */
  url: string
  /** An API key (`wl_…`). */
  apiKey?: string
  /** A session (`wls_…`), for the operations that no API key may do; without an API key for all of them. */
  session?: string
  /**
   * The org meant by every call that does not name another. Left out: the one of the credential, which the service is
   * asked for once.
   */
  org?: string
  /** In place of the global `fetch`: a proxy, a test. */
  fetch?: typeof fetch
  /** Asked when a limit refuses a call (429); when it answers true, it is made again. `follow` has its own way. */
  onLimited?: (error: ApiError, signal: AbortSignal | undefined) => Promise<boolean>
}

/** An answer other than success, or none at all (status 0). */
export declare class ApiError extends Error {
  readonly status: number
  /** One of `ApiErrorCode`, or one that a newer coordinator knows. */
  readonly code: ApiErrorCode | (string & {})
  readonly detail: Record<string, unknown> | undefined
  readonly requestId: string | undefined
  /** The operation that was called, such as `runs.trigger`. */
  readonly operation: string | undefined
  /** What stood for the names in its path. */
  readonly names: Readonly<Record<string, string>>
  /**
   * The call changes something, and may have done so: its answer was lost, or came from a proxy, or tells of a failure
   * inside. Look before you make the same call again, or give it an idempotency key.
   */
  readonly mayBeDone: boolean
  constructor(
    message: string,
    facts: {
      status: number
      code: string
      detail?: Record<string, unknown>
      requestId?: string
      cause?: unknown
      operation?: string
      names?: Record<string, string>
      mayBeDone?: boolean
    },
  )
}

/** `UNREACHABLE`: no answer came. `BAD_ANSWER`: one came that is not ours, from a proxy for instance. */
export type ApiErrorCode = FaultCode | 'UNREACHABLE' | 'BAD_ANSWER'

export interface Follows {
  /**
   * The events of a run as they happen, each exactly once and in order, across broken connections.
   * Ends when the run has ended and its log is read.
   *
   * @example
   * const events = client.follow(run.id, { channels: ['phase', 'log'] })
   * for await (const { type, data } of events) console.log(type, data)
   */
  follow(run: string, options?: FollowOptions): AsyncGenerator<RunEvent, void>
  /**
   * What happens to the runs of the org, live: each event exactly once, those of a run in their order, across
   * broken connections. Ends by its signal.
   *
   * @example
   * for await (const { type, run, workflow } of client.followOrg({ signal })) console.log(workflow, run, type)
   */
  followOrg(options?: FollowOrgOptions): AsyncGenerator<OrgEvent, void>
}

export interface FollowOptions extends ReconnectOptions {
  /** The cursor of the last event that was read: only those behind it; 0, the default, is the whole log. */
  since?: number
  /** Which channels; `lifecycle`, `phase` and `output` when left out. */
  channels?: Channel[]
  /**
   * Told when the last event that was read is not in the log any more, as after a restore of the database. The events
   * that come then are those of the log as it is now, from the first one on. What it throws ends the iteration.
   */
  onReset?: (message: string) => void
}

export interface ReconnectOptions {
  /** Ends the iteration by throwing the signal's reason. */
  signal?: AbortSignal
  /**
   * A connection that says nothing for this long is given up for a new one. 45 s: the server is heard of every 15 s.
   */
  silenceMs?: number
  /** How long to go on trying when the server cannot be reached; 2 min by default. */
  patienceMs?: number
  /** Told before each new attempt. */
  onReconnect?: (why: string) => void
}

export interface FollowOrgOptions extends ReconnectOptions {
  /** The org, when it is not the one of the credential. */
  org?: string
  /** The `position` of the last event that was read; left out: from now on. */
  since?: string
  /**
   * Told the position from which on nothing is missed: at the beginning, and where events were gone. What it throws
   * ends the iteration.
   */
  onReady?: (position: string, isReset: boolean) => void
}

export interface CallOptions {
  signal?: AbortSignal
  /** How long to wait for the answer; 60 s by default. */
  deadlineMs?: number
  headers?: Record<string, string>
}
export {}
