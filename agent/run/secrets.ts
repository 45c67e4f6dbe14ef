import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Rest } from '../link/rest.ts'
import type { AgentRun } from './agent-run.ts'
import { keepRedactors } from './redact/redactor-cache.ts'
import type { Redactor } from './redact/redactor.ts'

/** What a run is given besides its variables, and what keeps it out of all that the run tells. */
export interface RunSecrets {
  values: Readonly<Record<string, string>>
  redactor: Redactor
}

/** Secrets are read anew for each process and are in no file: what is known of them ends with the agent. */
export interface Secrets {
  /** As they are now; undefined when the run has none. Rejects with a sentence. */
  read(agentRun: AgentRun): Promise<RunSecrets | undefined>
  /** The same for a program that was taken back, which says itself what it was given: that is hidden as well. */
  readAgain(agentRun: AgentRun, given: Readonly<Record<string, string>>): Promise<RunSecrets | undefined>
  /** The run has ended and prints nothing any more. */
  forget(run: string): void
}

/** In all. Finding them in everything that a run tells takes about a thousand times the memory. */
export const MOST_BYTES = 128 * 1024

export class SecretsTooLarge extends Error {
  override readonly name = 'SecretsTooLarge'
}

/** They could not be read just now; in a moment that may be different, and nothing of the run has begun. */
export class SecretsNotNow extends Error {
  override readonly name = 'SecretsNotNow'
}

/** A slot is held meanwhile. What lasts longer is for the coordinator to wait for. */
const DEADLINE_MS = 10_000
const BACKOFF = { firstMs: 100, capMs: 3_000 }
/** What may be different in a moment: no answer, no key to open them with, too many questions at once. */
const PASSING: readonly string[] = ['UNREACHABLE', 'BAD_ANSWER', 'SECRETS_UNAVAILABLE']
/** Runs of which it is remembered what they were given. */
const MOST_RUNS = 200

type Values = ReadonlyMap<string, ReadonlySet<string>>

export function createSecrets(rest: Pick<Rest, 'secrets'>, deadlineMs = DEADLINE_MS): Secrets {
  const redactors = keepRedactors()
  /** A run that goes on in a new process may still print what an earlier one was given, from its journal for instance. */
  const given = new Map<string, Values>()

  function remember(run: string, values: Readonly<Record<string, string>>): Values {
    const all = new Map(given.get(run))
    for (const [name, value] of Object.entries(values)) all.set(name, new Set([...(all.get(name) ?? []), value]))
    given.delete(run)
    given.set(run, all)
    for (const oldest of given.keys()) if (given.size > MOST_RUNS) given.delete(oldest)
    return all
  }

  return {
    async read(agentRun) {
      const { run, secrets } = agentRun.offer
      if (!secrets && !given.has(run)) return undefined
      const values = secrets ? await readWithRetries(rest, agentRun, agentRun.unwanted, deadlineMs) : {}
      assertSize(values)
      const all = remember(run, values)
      return { values, redactor: redactors.of(all) }
    },
    async readAgain(agentRun, given) {
      const { run, secrets, variables } = agentRun.offer
      const values = Object.fromEntries(Object.entries(given).filter(([name, value]) => variables[name] !== value))
      // A program can say anything.
      assertSize(values)
      if (!secrets && Object.keys(values).length === 0) return undefined
      remember(run, values)
      const found = secrets ? await readWithRetries(rest, agentRun, agentRun.fated, deadlineMs) : {}
      const all = remember(run, found)
      return { values, redactor: redactors.of(all) }
    },
    forget: (run) => void given.delete(run),
  }
}

function assertSize(values: Readonly<Record<string, string>>): void {
  const bytes = Object.values(values).reduce((sum, value) => sum + Buffer.byteLength(value), 0)
  if (bytes <= MOST_BYTES) return
  throw new SecretsTooLarge(
    `The secrets of the run have ${bytes} bytes in all, and ${MOST_BYTES} are allowed. Keep what is large elsewhere, and the key to it here.`,
  )
}

async function readWithRetries(
  rest: Pick<Rest, 'secrets'>,
  { offer }: AgentRun,
  unwanted: AbortSignal,
  deadlineMs: number,
): Promise<Record<string, string>> {
  const deadline = performance.now() + deadlineMs
  for (let failures = 0; ; failures++) {
    try {
      // The token of the moment: a renewal may have come meanwhile.
      return await rest.secrets(offer.run, offer.token, unwanted)
    } catch (error) {
      const waitMs = backoffMs(failures, BACKOFF)
      if (!isPassing(error)) throw new Error(textOf(error), { cause: error })
      if (unwanted.aborted || performance.now() + waitMs > deadline)
        throw new SecretsNotNow(textOf(error), { cause: error })
      await pause(waitMs, unwanted)
    }
  }
}

function isPassing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  return PASSING.includes(error.code) || error.status === 429 || error.status >= 500
}

function textOf(error: unknown): string {
  return `The secrets of the run could not be read: ${error instanceof Error ? error.message : String(error)}`
}
