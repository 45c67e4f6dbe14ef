/** Every outcome that our contract names: its HTTP status and the sentence a person reads. Codes are never reused. */
export const FAULTS = {
  VALIDATION_FAILED: [400, 'The request does not fit its schema.'],
  UNAUTHENTICATED: [401, 'Send a valid credential as `Authorization: Bearer <key>`.'],
  UNVERIFIED: [401, 'The delivery could not be verified.'],
  FORBIDDEN: [403, 'The credential lacks the role or scope for this.'],
  NOT_FOUND: [404, 'There is nothing here under this name.'],
  METHOD_NOT_ALLOWED: [405, 'This path exists, but not for this method.'],
  CONFLICT: [409, 'The thing has changed or exists already.'],
  RUN_ALREADY_FINISHED: [409, 'The run has finished; a finished run does not change.'],
  RUN_DELETED: [410, 'The run was deleted: its input, output and events are gone.'],
  RUN_HAS_LIVE_CHILDREN: [409, 'A run that was called below this one has not finished.'],
  RUN_NOT_FINISHED: [409, 'The run has not finished yet.'],
  RUN_NOT_BLOCKED: [409, 'The run is not blocked; only a blocked run is restarted by hand.'],
  INPUT_CLOSED: [409, 'The question is not open any more.'],
  IDEMPOTENCY_CONFLICT: [409, 'This idempotency key was used with another request.'],
  RUNNER_BUSY: [409, 'The runner has work or is online; drain it first, or use `force`.'],
  RUNNER_REVOKED: [409, 'The runner was revoked, which is for good; register the machine anew.'],
  POOL_IN_USE: [409, 'The pool still has runners, runs or workflows.'],
  ENVIRONMENT_IN_USE: [409, 'Unfinished runs use this environment.'],
  WORKFLOW_DISABLED: [409, 'The workflow is disabled; no run of it starts until it is enabled.'],
  WORKFLOW_EXISTS: [409, 'A workflow with this slug exists; update it instead.'],
  SCHEDULE_OF_DESCRIPTOR: [409, 'The schedule stands in the descriptor; change it there and deploy.'],
  DELIVERY_UNVERIFIED: [409, 'The delivery was not verified, and does not verify now either.'],
  PAYLOAD_NOT_KEPT: [409, 'Only the beginning of this payload was kept.'],
  STALE_PLACEMENT: [409, 'The run has been given to another process; this one must stop.'],
  REGISTRATION_TOKEN_USED: [409, 'The registration token has been used up; mint a new one.'],
  PAYLOAD_TOO_LARGE: [413, 'The request body is larger than this route takes.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'Send the body as `Content-Type: application/json`.'],
  RANGE_NOT_SATISFIABLE: [416, 'The part that `Range` asks for begins behind the end.'],
  UPGRADE_REQUIRED: [426, 'This route speaks WebSocket, or the agent is too old for this coordinator.'],
  RATE_LIMITED: [429, 'Too many requests; wait for `Retry-After` seconds.'],
  SECRETS_UNAVAILABLE: [503, 'The coordinator has no key by which it could read or write secrets.'],
  INTERNAL: [500, 'Something broke on our side. The request id finds it in the log.'],
  UNAVAILABLE: [503, 'The service cannot reach its database right now; try again.'],
} as const satisfies Record<string, readonly [number, string]>

export type FaultCode = keyof typeof FAULTS

/** What `detail` may carry. `path` is the offending field, as in `files[2].path`. */
export type FaultDetail = { path?: string } & Record<string, unknown>

/** An outcome named by the contract. Anything else that is thrown is a bug and is answered 500. */
export class Fault extends Error {
  readonly code: FaultCode
  readonly status: number
  readonly detail: FaultDetail | undefined

  constructor(code: FaultCode, detail?: FaultDetail, message?: string) {
    super(message ?? FAULTS[code][1])
    this.name = 'Fault'
    this.code = code
    this.status = FAULTS[code][0]
    this.detail = detail
  }
}

/** Why a run failed: `error.code` of a run. The first are ours; a program may throw with a code of its own. */
export const RUN_ERRORS = {
  PROGRAM_FAILED: 'The program threw an error.',
  PROGRAM_EXITED: 'The program ended its process before `run` returned.',
  RUN_NEVER_SETTLED: 'The program waits for something that can never happen.',
  PROGRAM_LINE_BROKEN: 'The program wrote into the line that its process keeps for the agent, or kept that waiting.',
  OUTPUT_INVALID: 'The returned value does not fit the output schema.',
  OUTPUT_TOO_LARGE: 'The returned value is larger than a run may return.',
  RUN_TIMED_OUT: 'The run took longer than the timeout of its descriptor.',
  RUN_CRASHED: 'The process or its agent was lost more often than the descriptor allows.',
  RUN_FENCED: 'The agent of the run was out of reach more often than the descriptor allows.',
  JOURNAL_FULL: 'The run has more in its journal than a run may have.',
  JOURNAL_UNREADABLE: 'The program said something about its journal that cannot be taken.',
  ENVIRONMENT_GONE: 'The environment of the run was deleted before the run was started.',
  BUNDLE_UNUSABLE: 'The agent could not unpack the workflow.',
  WORKSPACE_FULL: 'The run has more in its workspace than its machine or pool allows.',
  SECRETS_TOO_LARGE: 'The secrets of the run are larger than what can be kept out of its log.',
  INTERNAL: 'The coordinator could not take what the agent reported.',
} as const

export type RunErrorCode = keyof typeof RUN_ERRORS
