import { waitsFor } from './bridge.ts'
import { jsonText, MOST_LEVELS, nestsTooDeep } from './json-text.ts'
import { reviveError } from './wait-errors.ts'

const INPUT_BYTES = 1024 * 1024
const SLUG_CHARACTERS = 200
const TAG_CHARACTERS = 64
const MOST_TAGS = 20
const MOST_PRIORITY = 100
// An `int` of the database.
const MOST_VERSION = 2 ** 31 - 1
// As in shared, of which a runtime takes types only.
const ENVIRONMENT = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

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

type AnyRun = (...args: never[]) => unknown

/** `T` is the type of the output, or of the `run` function of the workflow that is called. */
type OutputOf<T> = T extends AnyRun ? Awaited<ReturnType<T>> : T
type CallArguments<T> = T extends (...args: infer Given) => unknown
  ? Given extends [input: infer Input, ...rest: unknown[]]
    ? [input: Input, options?: CallOptions]
    : [input?: unknown, options?: CallOptions]
  : [input?: unknown, options?: CallOptions]

export const workflows = {
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
  call<T = unknown>(slug: string, ...[input, options = {}]: CallArguments<T>): Promise<OutputOf<T>> {
    const ask = askOf(slug, input, options)
    const waits = waitsFor('workflows.call()')
    if (!waits) {
      throw new Error(
        `workflows.call('${slug}') was called outside of a run, where no other run can be started. In a unit test ` +
          "put an output in its place: mock.method(workflows, 'call', async () => ({ bytes: 512 })).",
      )
    }
    const args = { ...options, input: JSON.parse(ask.inputText) as unknown }
    return waits.wait({ kind: 'child', name: slug, args, ask, toError: reviveError }) as Promise<OutputOf<T>>
  },
}

function askOf(slug: string, input: unknown, { version, environment, tags = [], priority = 0 }: CallOptions) {
  if (!isText(slug, SLUG_CHARACTERS)) throw new TypeError('workflows.call(slug): slug is the name of a workflow.')
  const call = `workflows.call('${slug}'`
  if (version !== undefined && !(Number.isSafeInteger(version) && version >= 1 && version <= MOST_VERSION)) {
    throw new TypeError(`${call}, input, { version }): version is a whole number from 1 to ${MOST_VERSION}.`)
  }
  if (environment !== undefined && environment !== null && !isName(environment)) {
    throw new TypeError(
      `${call}, input, { environment }): environment is a name of lower-case letters, digits and dashes, 1 to 63 ` +
        "characters, or null for the organization's base.",
    )
  }
  if (!Array.isArray(tags) || tags.length > MOST_TAGS || !tags.every((tag) => isText(tag, TAG_CHARACTERS))) {
    throw new TypeError(
      `${call}, input, { tags }): tags are up to ${MOST_TAGS} texts of 1 to ${TAG_CHARACTERS} characters.`,
    )
  }
  if (!Number.isSafeInteger(priority) || Math.abs(priority) > MOST_PRIORITY) {
    throw new TypeError(
      `${call}, input, { priority }): priority is a whole number from -${MOST_PRIORITY} to ${MOST_PRIORITY}.`,
    )
  }
  const inputText = inputTextOf(call, input)
  return { for: 'child' as const, workflow: slug, inputText, version: version ?? null, environment, tags, priority }
}

/** Names are kept in PostgreSQL, which takes neither NUL nor half a character. */
function isText(value: unknown, most: number): boolean {
  return (
    typeof value === 'string' && value !== '' && value.length <= most && value.isWellFormed() && !value.includes('\0')
  )
}

const isName = (value: unknown) => typeof value === 'string' && ENVIRONMENT.test(value)

function inputTextOf(call: string, input: unknown): string {
  const text = jsonText(input === undefined ? null : input)
  if (typeof text !== 'string') {
    throw new TypeError(`${call}, input): input is not JSON. Leave out functions, bigints and circular references.`)
  }
  const bytes = Buffer.byteLength(text)
  if (bytes > INPUT_BYTES)
    throw new TypeError(`${call}, input): input is ${bytes} bytes of JSON, ${INPUT_BYTES} at most.`)
  if (nestsTooDeep(text)) throw new TypeError(`${call}, input): input nests deeper than ${MOST_LEVELS} levels.`)
  return text
}
