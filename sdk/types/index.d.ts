// Written by deploy/tools/sdk-types.ts; `npx node deploy/tools/sdk-types.ts` writes it anew.
/// <reference types="node" />
/**
 * What a run gets that a delivery of a connection has started. `P` is what the provider sends.
 *
 * @example
 * import type { ConnectionEvent } from 'windlass'
 *
 * export async function run({ event, payload }: ConnectionEvent<{ ref: string }>) {
 *   return `${event} of ${payload.ref}`
 * }
 */
export interface ConnectionEvent<P = unknown> {
  /** Name of the connection. */
  connection: string
  /** What happened, as the provider calls it: `pull_request.opened`. Null where it does not say. */
  event: string | null
  /** What the provider calls the delivery. Null where it has no id. */
  id: string | null
  /** The body: JSON as it was sent, a form as an object, text as `{ text }`. */
  payload: P
  /** By lower-case name; credentials are `[redacted]`. */
  headers: Record<string, string>
  /** When it first came in, in milliseconds since the Unix epoch. */
  receivedAt: number
}

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
export declare const context: RunContext

/** Facts about the run that is being executed. The second parameter of `run`, and importable as `context`. */
export interface RunContext {
  /** The run's id, `run_…`. Stable across attempts: good as an idempotency key towards other systems. */
  readonly runId: string
  /** 1 at first; one more each time the program had to start again from the top because its process was lost. */
  readonly attempt: number
  /** Slug of the organization that owns the run. */
  readonly org: string
  /** What is executed: the workflow's slug and the version of it. */
  readonly workflow: {
    readonly slug: string
    readonly version: number
  }
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
/** A length of time: `'30s'`, `'1.5h'`, `'2d'` (units ms, s, m, h, d) or milliseconds. */
export type Duration = string | number

/**
 * The type that a schema describes, where it is written out in place; `unknown` where it says nothing that is
 * understood.
 */
export type FromSchema<S> = S extends {
  readonly const: infer Value
}
  ? Value
  : S extends {
        readonly enum: readonly (infer Value)[]
      }
    ? Value
    : S extends {
          readonly type: infer Name
        }
      ? FromType<S, Name extends readonly (infer Each)[] ? Each : Name>
      : unknown

/** One after the other where a schema names several. */
type FromType<S, Name> = Name extends 'string'
  ? string
  : Name extends 'number' | 'integer'
    ? number
    : Name extends 'boolean'
      ? boolean
      : Name extends 'null'
        ? null
        : Name extends 'array'
          ? FromItems<S>[]
          : Name extends 'object'
            ? FromProperties<S>
            : unknown

type FromItems<S> = S extends {
  readonly items: infer Items
}
  ? FromSchema<Items>
  : unknown

type FromProperties<S> = S extends {
  readonly properties: infer Properties
}
  ? Flat<
      {
        -readonly [Key in keyof Properties & RequiredKeys<S>]: FromSchema<Properties[Key]>
      } & {
        -readonly [Key in Exclude<keyof Properties, RequiredKeys<S>>]?: FromSchema<Properties[Key]>
      }
    >
  : Record<string, unknown>

type Flat<T> = {
  [Key in keyof T]: T[Key]
}

type RequiredKeys<S> = S extends {
  readonly required: readonly (infer Key)[]
}
  ? Key
  : never
/** JSON Schema, as far as it is used to tell the type of an answer. All other keywords are taken as well. */
export interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: {
    readonly [name: string]: JsonSchema
  }
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly [keyword: string]: unknown
}

/**
 * Writes a line to the run's log: `log` and `log.info` to its stdout, `log.warn` and `log.error` to its stderr. In
 * order with `console.log` and `phase`, and never lost, even when the program ends in the next statement. An error
 * among the fields keeps its message, stack and cause. Logging never throws: fields that are not JSON or too large (64
 * KiB with the message, unless the service has another limit) are left out, which the line then says; long messages are
 * split, and a message that is no text is written as the console has it, an error with its stack.
 *
 * @example
 * import { log } from 'windlass'
 *
 * export async function run(input: { user: string }) {
 *   log('looking up', { user: input.user })
 *   log.warn('the cache is cold')
 * }
 */
export declare const log: Log

/** `log(message, fields?)`, and the same with a level. */
export interface Log {
  (message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}
/** Facts beside a log line. */
export type LogFields = Record<string, unknown>
/**
 * Marks that the run has come to a new part of its work. Phases are what people see first when they look at a run.
 *
 * @param name what begins now, at most 200 characters: `'download'`
 * @param data any JSON that helps whoever reads it, at most 64 KiB, unless the service is set to another limit. A note
 *   with the size stands in place of more, and a warning in the log
 * @example
 * import { phase } from 'windlass'
 *
 * export async function run(input: { urls: string[] }) {
 *   phase('download', { count: input.urls.length })
 *   const pages = await Promise.all(input.urls.map((url) => fetch(url)))
 *   phase('report')
 *   return pages.map((page) => page.status)
 * }
 */
export declare function phase(name: string, data?: unknown): void

/**
 * Asks people and waits for the answer, which comes from the CLI, the API or a tool. The run is `awaiting_input`
 * meanwhile as far as nothing else of it goes on, takes no slot and survives the loss of its machine. The first answer
 * that fits counts.
 *
 * With a `schema` that is written out in place the answer has its type; else name the type:
 * `requestInput<{ ok: boolean }>(…)`.
 *
 * @throws InputTimedOutError when nobody has answered within `timeout`
 * @example
 * import { requestInput } from 'windlass'
 *
 * export async function run(input: { amount: number }) {
 *   const answer = await requestInput({
 *     prompt: `May ${input.amount} € be paid?`,
 *     schema: {
 *       type: 'object',
 *       properties: { approve: { type: 'boolean' }, note: { type: 'string' } },
 *       required: ['approve'],
 *     },
 *     timeout: '2d',
 *     onTimeout: { answer: { approve: false } },
 *   })
 *   return answer.approve ? 'paid' : (answer.note ?? 'refused')
 * }
 */
export declare function requestInput<Answer = unknown>(
  request: InputRequest<SchemaFor<Answer>, NoInfer<Answer>>,
): Promise<Answer>

/** With a schema that is written out in place: the answer has its type, and so has that of `onTimeout`. */
export declare function requestInput<const Schema extends JsonSchema | undefined>(
  request: InputRequest<Schema, FromSchema<Schema>>,
): Promise<FromSchema<Schema>>

/** A question to people. */
export interface InputRequest<Schema, Answer> {
  /** What they read: 1 to 10,000 characters. */
  prompt: string
  /** JSON Schema of the answer, at most 16 KiB of JSON; other answers are refused. Any JSON will do without it. */
  schema?: Schema
  /** How long an answer is waited for. Without it: for as long as the run may last. */
  timeout?: Duration
  /**
   * When time is up: `'throw'` an `InputTimedOutError` (which is what happens when nothing is said), or go on with an
   * answer.
   */
  onTimeout?:
    | 'throw'
    | {
        answer: Answer
      }
}

/** Where no type is named, the schema tells it: then nothing may pass as an answer that does not fit the schema. */
type SchemaFor<Answer> = IsAny<Answer> extends true ? JsonSchema : unknown extends Answer ? never : JsonSchema

type IsAny<T> = 0 extends 1 & T ? true : false

/**
 * Waits. From a second on the run is `sleeping` meanwhile as far as nothing else of it goes on: it takes no slot, its
 * time is not counted, and it goes on even when the machine that executed it is gone. Rejects with a `CancelledError`
 * or `TimedOutError` when the run is to end.
 *
 * While the run is `sleeping`, timers of the program that were `unref`'d go on firing as long as its process is kept.
 * When the program is led through its past again, a sleep that was over comes at once, also one below a second; a raw
 * timer takes its time again. So do not let the two race for an order that matters.
 *
 * @param time a duration (`'30s'`, `'1.5h'`, `'2d'` or milliseconds), a Date, or `{ until }`; at most 366 days
 * @example
 * import { log, sleep } from 'windlass'
 *
 * export async function run(input: { remindAt: number }) {
 *   await sleep('30s')
 *   log('half a minute later')
 *   await sleep({ until: input.remindAt })
 * }
 */
export declare function sleep(time: SleepTime): Promise<void>

/** How long, or until when. */
export type SleepTime =
  | Duration
  | Date
  | {
      until: Date | number
    }
/**
 * Keeps what a function comes to, also across the loss of the process: when the program is led through its past again,
 * a result that is kept is not asked for a second time. Meant for what should not happen twice, and for what may come
 * out differently each time: payments, random numbers, the time of day. `step` resolves when the result is kept.
 *
 * The function is executed at least once: again when the process dies between the effect and the keeping of its result.
 * Hand other systems an idempotency key, such as `context.runId` and the step's name. A step that waits inside is
 * executed again by each replay, up to its wait: what must not be repeated does not wait inside. Await what the
 * function calls: once its result is kept, steps and calls that it has left under way are not done again. The log warns
 * of such.
 *
 * The result, at most 1 MiB, comes back as a copy: plain objects, arrays, dates, maps, sets, bigints, bytes and errors
 * keep their type; functions and instances of classes are refused. An error that is thrown keeps name, message, `code`
 * and stack; it is kept like a result, so handle failures that should be tried again inside of the function. Where the
 * program catches one and calls anything after that, the attempt after a crash is given it too, and so takes the same
 * way. After an error that is tried again it is given where a step of that name was called again. Any other failure is
 * tried again by the next attempt. Return what is to stay decided in place of throwing it: a result is always kept.
 *
 * @param name says what it does, at most 200 characters; need not be unique. After a crash equal names are told apart
 * by the order of their calls only: branches that go on side by side and do different work take different names
 * @example
 * import { step, type RunContext } from 'windlass'
 *
 * export async function run(input: { amount: number }, context: RunContext) {
 *   const paidAt = await step('pay', async () => {
 *     const headers = { 'Idempotency-Key': `${context.runId}/pay` }
 *     await fetch('https://example.com/pay', { method: 'POST', headers, body: JSON.stringify(input) })
 *     return new Date()
 *   })
 *   return { paidAt: paidAt.toISOString() }
 * }
 */
export declare function step<T>(name: string, fn: () => T): Promise<Awaited<T>>

/**
 * Why `context.signal` aborted: the agent is being stopped, and the run goes on elsewhere. Nobody has cancelled it, so
 * nothing is to be undone. Work that is given the signal may end here; the next attempt begins it again.
 *
 * Steps that succeed until then are kept. A step that fails is executed again by the next attempt, and the program is
 * not told of it. Once a program has looked at `context.signal`, what it does after the abort may come of that: its
 * further calls are made by the next attempt only, and so is what `run` returns.
 *
 * @example
 * import { context, AgentStoppedError } from 'windlass'
 *
 * export async function run() {
 *   try {
 *     await fetch('https://example.com/slow', { method: 'POST', signal: context.signal })
 *   } catch (error) {
 *     if (context.signal.reason instanceof AgentStoppedError) throw error
 *     await fetch('https://example.com/undo', { method: 'POST' })
 *   }
 * }
 */
export declare class AgentStoppedError extends Error {
  readonly name = 'AgentStoppedError'
  readonly code = 'AGENT_STOPPED'
  static [Symbol.hasInstance](value: unknown): boolean
}
/**
 * Why `context.signal` aborted: somebody cancelled the run. It is `context.signal.reason`, and what `fetch` and others
 * that were given the signal reject with.
 *
 * @example
 * import { context, CancelledError } from 'windlass'
 *
 * export async function run() {
 *   try {
 *     await fetch('https://example.com/slow', { signal: context.signal })
 *   } finally {
 *     if (context.signal.reason instanceof CancelledError) console.log('cancelled: tidying up')
 *   }
 * }
 */
export declare class CancelledError extends Error {
  readonly name = 'CancelledError'
  readonly code = 'CANCELLED'
  static [Symbol.hasInstance](value: unknown): boolean
}

/** Why `context.signal` aborted: the run has used up the `timeout` of its descriptor. */
export declare class TimedOutError extends Error {
  readonly name = 'TimedOutError'
  readonly code = 'TIMED_OUT'
  static [Symbol.hasInstance](value: unknown): boolean
}

/**
 * The call has started no run: there is no such workflow, its input does not fit, and the like. `detail.code` says
 * which.
 */
export declare class CallRefusedError extends Error {
  readonly name = 'CallRefusedError'
  readonly code = 'CALL_REFUSED'
  readonly detail: Readonly<Record<string, unknown>>
  constructor(message: string, detail?: Readonly<Record<string, unknown>>)
  static [Symbol.hasInstance](value: unknown): boolean
}

/** Nobody answered in time. `detail.inputId` is the question. */
export declare class InputTimedOutError extends Error {
  readonly name = 'InputTimedOutError'
  readonly code = 'INPUT_TIMED_OUT'
  readonly detail: Readonly<Record<string, unknown>>
  constructor(message: string, detail?: Readonly<Record<string, unknown>>)
  static [Symbol.hasInstance](value: unknown): boolean
}

/** The run that was called has been cancelled. */
export declare class RunCancelledError extends Error {
  readonly name = 'RunCancelledError'
  readonly code = 'RUN_CANCELLED'
  readonly runId: string
  readonly detail: Readonly<Record<string, unknown>>
  constructor(runId: string)
  static [Symbol.hasInstance](value: unknown): boolean
}

/**
 * The run that was called has failed.
 *
 * @example
 * import { RunFailedError, workflows } from 'windlass'
 *
 * export async function run(input: { url: string }) {
 *   try {
 *     return await workflows.call('scrape', input)
 *   } catch (error) {
 *     if (!(error instanceof RunFailedError)) throw error
 *     return { failed: error.runId, why: error.error.message }
 *   }
 * }
 */
export declare class RunFailedError extends Error {
  readonly name = 'RunFailedError'
  readonly code = 'RUN_FAILED'
  readonly runId: string
  readonly error: RunFailure
  readonly detail: Readonly<Record<string, unknown>>
  constructor(runId: string, error: RunFailure)
  static [Symbol.hasInstance](value: unknown): boolean
}

/** Why a run failed, as it stands at the run. */
export interface RunFailure {
  readonly code: string
  readonly message: string
  readonly detail?: Readonly<Record<string, unknown>>
}

export declare const workflows: {
  /**
   * Starts a run of another workflow of the organization, as a child of this one, and waits for its output. This run is
   * `waiting_for_child` meanwhile as far as nothing else of it goes on. Calls run side by side when they are awaited
   * together. When this run is cancelled, so are the runs that it has called.
   *
   * To start a run without waiting for it, do not await: `void workflows.call('report', { month })`. It goes on when
   * this run has ended. A refused call fails this run, even when it has returned meanwhile; `.catch(…)` handles it.
   *
   * @param slug which workflow
   * @param input any JSON, at most 1 MiB
   * @throws RunFailedError when that run fails
   * @throws RunCancelledError when that run is cancelled
   * @throws CallRefusedError when there is no such workflow, or its input does not fit
   * @example
   * import { workflows } from 'windlass'
   *
   * // With the function's type, `import type { run as resize } from '../resize/index.ts'`, the input is checked too.
   * declare function resize(input: { url: string; width: number }): Promise<{ bytes: number }>
   *
   * export async function run(input: { urls: string[] }) {
   *   const options = { tags: ['thumbs'] }
   *   const calls = input.urls.map((url) => workflows.call<typeof resize>('resize', { url, width: 200 }, options))
   *   const sizes = await Promise.all(calls)
   *   return sizes.reduce((sum, { bytes }) => sum + bytes, 0)
   * }
   */
  call<T = unknown>(slug: string, ...[input, options]: CallArguments<T>): Promise<OutputOf<T>>
}

type CallArguments<T> = T extends (...args: infer Given) => unknown
  ? Given extends [input: infer Input, ...rest: unknown[]]
    ? [input: Input, options?: CallOptions]
    : [input?: unknown, options?: CallOptions]
  : [input?: unknown, options?: CallOptions]
/** How the run that is called differs from what would be taken by itself. */
export interface CallOptions {
  /** A version of the workflow; else the one that is current when the call is made. */
  version?: number
  /** Name of an environment, or null for the organization's base; else that of the calling run. */
  environment?: string | null
  /** Up to 20, of 1 to 64 characters. */
  tags?: string[]
  /** From −100 to 100; what is higher comes first. */
  priority?: number
}

/** `T` is the type of the output, or of the `run` function of the workflow that is called. */
type OutputOf<T> = T extends AnyRun ? Awaited<ReturnType<T>> : T

type AnyRun = (...args: never[]) => unknown
export {}
