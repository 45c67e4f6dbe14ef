import type { ApiError, ApiErrorCode } from '../client/index.ts'
import { EXIT } from './exit-codes.ts'
import { wayToLook } from './may-be-done.ts'
import { lengthText } from './terminal.ts'

/** What to type next, and the exit code. */
export type WayOut = [next: string, exit: number]

type Find = (error: ApiError, command: string) => WayOut

/** The way out of each refusal that the service knows. A code of a newer service is judged by its status. */
const WAYS: Record<ApiErrorCode, Find> = {
  UNREACHABLE: () => [
    '`npm start` in the project starts a local one; another is named by --url, WINDLASS_URL or a profile',
    EXIT.unreachable,
  ],
  BAD_ANSWER: () => ['windlass whoami shows which address is meant', EXIT.failed],
  VALIDATION_FAILED: (error, command) => [nextForInput(error, command), EXIT.usage],
  UNAUTHENTICATED: () => [
    'pass a key by --api-key, WINDLASS_API_KEY or `windlass profiles add`; `npm start` prints the local one',
    EXIT.refused,
  ],
  UNVERIFIED: () => ['windlass deliveries list --outcome unverified shows why', EXIT.refused],
  FORBIDDEN: (error) => [nextForRight(error), EXIT.refused],
  NOT_FOUND: (error, command) => [`windlass ${listFor(error, command)} list`, EXIT.refused],
  METHOD_NOT_ALLOWED: () => ['windlass service health shows the version of the service', EXIT.failed],
  CONFLICT: (error, command) => [`windlass ${listFor(error, command)} list`, EXIT.failed],
  RUN_ALREADY_FINISHED: (error) => [`windlass runs retry ${run(error)} runs it again`, EXIT.failed],
  RUN_DELETED: (error) => [`windlass runs get ${run(error)} shows what is left of it`, EXIT.failed],
  RUN_HAS_LIVE_CHILDREN: (error) => [
    `windlass runs children ${run(error)} lists them; windlass runs cancel <run>`,
    EXIT.failed,
  ],
  RUN_NOT_FINISHED: (error) => [`windlass logs -f ${run(error)} follows it to its end`, EXIT.failed],
  RUN_NOT_BLOCKED: (error) => [`windlass runs why ${run(error)} tells where it is`, EXIT.failed],
  INPUT_CLOSED: () => ['windlass inputs get <input> shows how it was closed', EXIT.failed],
  IDEMPOTENCY_CONFLICT: () => ['take another --idempotency-key for another request', EXIT.failed],
  RUNNER_BUSY: () => ['windlass runners drain <runner> --wait, or --force', EXIT.failed],
  RUNNER_REVOKED: () => ['windlass pools token <pool> makes a token for registering the machine anew', EXIT.failed],
  POOL_IN_USE: () => ['windlass runners list --pool <pool> shows its machines', EXIT.failed],
  ENVIRONMENT_IN_USE: (error) => [
    `windlass runs list --environment ${text(error, 'environment') ?? '<name>'} shows them; wait, ` +
      'or windlass runs cancel <run>',
    EXIT.failed,
  ],
  WORKFLOW_DISABLED: (error) => [
    `windlass workflows enable ${text(error, 'workflow') ?? '<workflow>'} lets its runs start again`,
    EXIT.failed,
  ],
  WORKFLOW_EXISTS: () => ['windlass deploy again, which makes a new version of it', EXIT.failed],
  SCHEDULE_OF_DESCRIPTOR: () => ['change `schedules` in workflow.jsonc, then windlass deploy', EXIT.failed],
  DELIVERY_UNVERIFIED: () => ['set the right secret, or --unverified with a session of an admin', EXIT.failed],
  PAYLOAD_NOT_KEPT: () => ['have the provider send it again', EXIT.failed],
  STALE_PLACEMENT: (error) => [`windlass runs get ${run(error)}`, EXIT.failed],
  REGISTRATION_TOKEN_USED: () => ['windlass pools token <pool> makes another', EXIT.refused],
  PAYLOAD_TOO_LARGE: (error, command) => [nextForLarge(error, command), EXIT.usage],
  UNSUPPORTED_MEDIA_TYPE: () => ['windlass service health shows the version of the service', EXIT.failed],
  RANGE_NOT_SATISFIABLE: () => ['ask for the whole file again', EXIT.failed],
  UPGRADE_REQUIRED: () => ['install the version of the service, which windlass service health shows', EXIT.failed],
  RATE_LIMITED: (error, command) => [`${waitText(error)}, then again: windlass ${command}`, EXIT.unreachable],
  SECRETS_UNAVAILABLE: (_, command) => [`once the coordinator has its key, again: windlass ${command}`, EXIT.failed],
  INTERNAL: () => ['windlass service health; the request id finds it in the log of the coordinator', EXIT.failed],
  UNAVAILABLE: (_, command) => [`wait a little, then again: windlass ${command}`, EXIT.unreachable],
}

export function wayOut(error: ApiError, command: string): WayOut {
  const [next, exit] = wayOutOf(error, command)
  return [(error.mayBeDone ? wayToLook(error, command) : undefined) ?? next, exit]
}

/** The service's own words advise to send the request again, which is right for a request and not for a command. */
export function withoutAdvice(message: string): string {
  return message.replace(/; try again\.(?= \(request |$)/, '.')
}

function wayOutOf(error: ApiError, command: string): WayOut {
  if (Object.hasOwn(WAYS, error.code)) return WAYS[error.code as ApiErrorCode](error, command)
  const [, code] = BY_STATUS.find(([least]) => error.status >= least) ?? []
  return WAYS[code ?? 'VALIDATION_FAILED'](error, command)
}

const BY_STATUS: readonly [least: number, code: ApiErrorCode][] = [
  [500, 'INTERNAL'],
  [429, 'RATE_LIMITED'],
  [410, 'VALIDATION_FAILED'],
  [409, 'CONFLICT'],
  [404, 'NOT_FOUND'],
  [403, 'FORBIDDEN'],
  [401, 'UNAUTHENTICATED'],
]

/** Where the things of a command are listed. */
const LISTS = ['runs', 'jobs', 'inputs', 'workflows', 'pools', 'runners', 'schedules', 'env', 'vars', 'secrets', 'keys']

function listFor(error: ApiError, command: string): string {
  const [group = ''] = command.split(' ')
  if (text(error, 'environment') !== undefined || error.detail?.['path'] === 'environment') return 'env'
  if (group === 'logs') return 'runs'
  return LISTS.includes(group) ? group : 'workflows'
}

function nextForInput(error: ApiError, command: string): string {
  if (error.detail?.['path'] === 'environment') return 'windlass env list, or windlass env create <name>'
  return command === 'run'
    ? 'windlass workflows get <workflow> shows what input it takes'
    : `windlass ${command} --help`
}

function nextForLarge({ detail }: ApiError, command: string): string {
  if (command === 'deploy') return 'leave large files out of the folder'
  const limit = detail?.['limitBytes']
  return typeof limit === 'number' ? `send less: ${limit} bytes at most` : 'send less'
}

function nextForRight(error: ApiError): string {
  const needs = error.detail?.['needs'] as { session?: unknown; role?: unknown } | undefined
  if (needs?.session !== true) return 'windlass whoami shows what yours may do; windlass keys create makes another'
  return (
    '`windlass admin sessions create --org <org> --role admin` on the host of the coordinator,\n' +
    '      then `windlass profiles add <name> --url <url> --session -`, or set WINDLASS_SESSION'
  )
}

function run(error: ApiError): string {
  return text(error, 'run') ?? '<run>'
}

function text({ detail }: ApiError, name: string): string | undefined {
  const value = detail?.[name]
  return typeof value === 'string' ? value : undefined
}

function waitText({ detail }: ApiError): string {
  const ms = detail?.['retryAfterMs']
  return typeof ms === 'number' ? `wait ${lengthText(Math.max(ms, 1000))}` : 'wait a little'
}
