import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Rest } from '../link/rest.ts'
import type { AgentRun } from './agent-run.ts'
import { bytesOf, keepGivenSecrets, MOST_BYTES, type Hidden } from './given-secrets.ts'
import { keepRedactors, MOST_MIB } from './redact/redactor-cache.ts'
import { TooMuchToFind } from './redact/pattern-tree.ts'
import type { Redactor } from './redact/redactor.ts'
import { keepUnconfirmed } from './unconfirmed-secrets.ts'

/** What a run is given besides its variables, and what keeps it out of all that the run tells. */
export interface RunSecrets {
  values: Readonly<Record<string, string>>
  redactor: Redactor
  /** Names of which former values are hidden no longer, from this process on. */
  forgotten: readonly string[]
}

/** Secrets are read anew for each process and are in no file: what is known of them ends with the agent. */
export interface Secrets {
  /** As they are now; undefined when the run has none. Rejects with a sentence. */
  read(agentRun: AgentRun): Promise<RunSecrets | undefined>
  /** The same for a program that was taken back, which says itself what it was given: that is hidden as well. */
  readAgain(
    agentRun: AgentRun,
    given: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<RunSecrets | undefined>
  /** `ask` gets another token for a run whose own was refused. */
  onOldToken(ask: (agentRun: AgentRun) => void): void
  /** Nothing of this placement is here now, and the run may go on later. A newer one that is here keeps what it has. */
  rests(run: string, epoch: number): void
  /** The run has ended and prints nothing any more. */
  forget(run: string): void
}

/** A program that was taken back says that it was given more than it can have been, or than there is room for. */
class SecretsDoubtful extends Error {
  override readonly name = 'SecretsDoubtful'
}

export class SecretsTooLarge extends Error {
  override readonly name = 'SecretsTooLarge'
}

/** They could not be read just now; in a moment that may be different, and nothing of the run has begun. */
export class SecretsNotNow extends Error {
  override readonly name = 'SecretsNotNow'
}

const NO_ROOM =
  'The secrets of the run are large: its agent has no memory to find them until other runs with large secrets end.'
const TWICE = 'The run was offered to this agent again meanwhile.'
const ELSEWHERE = 'Keep what is large elsewhere, and the key to it here.'
const TOO_MUCH =
  `To find the secrets of the run in what it tells would take more than ${MOST_MIB} MiB of memory, ` +
  `as many of their characters have to be escaped. ${ELSEWHERE}`

/** A slot is held meanwhile. What lasts longer is for the coordinator to wait for. */
const DEADLINE_MS = 10_000
/** A program has begun, and is lost otherwise: its own time or a cancel comes before that. */
const AGAIN_MS = 600_000
const BACKOFF = { firstMs: 100, capMs: 3_000 }
/** A token that is refused counts for its address, with those of its whole fleet. Another is here within a moment. */
const REFUSED_BACKOFF = { firstMs: 300, capMs: 6_000 }
/** What may be different in a moment: no answer, no key to open them with, too many questions at once. */
const PASSING: readonly string[] = ['UNREACHABLE', 'BAD_ANSWER', 'SECRETS_UNAVAILABLE']
/**
 * A token of ten minutes ago, or of a coordinator whose clock or key the one that was asked does not share: that says
 * nothing of the run. Another token, or another coordinator, may serve.
 */
const OLD_TOKEN = 'UNAUTHENTICATED'

export function createSecrets(
  rest: Pick<Rest, 'secrets'>,
  deadlineMs = DEADLINE_MS,
  { given = keepGivenSecrets(), redactors = keepRedactors() } = {},
): Secrets {
  const unconfirmed = keepUnconfirmed()
  /** By run, its last placement that has read its secrets: one before that may not be through with its own reading. */
  const newest = new Map<string, number>()
  let askForToken: (agentRun: AgentRun) => void = () => {}
  const readNow = (agentRun: AgentRun, within: Omit<Within, 'askForToken'>) =>
    readWithRetries(rest, agentRun, { ...within, askForToken: () => askForToken(agentRun) })

  function note({ run, epoch }: AgentRun['offer']): void {
    newest.set(run, Math.max(epoch, newest.get(run) ?? 0))
  }

  const isNewerHere = (run: string, epoch: number) => (newest.get(run) ?? 0) > epoch

  async function hold(run: string, values: Hidden['values']): Promise<Redactor> {
    const redactor = await redactors.hold(run, values)
    if (!redactor) throw new SecretsNotNow(NO_ROOM)
    return redactor
  }

  async function hiding(values: RunSecrets['values'], hidden: Hidden, making: Promise<Redactor>): Promise<RunSecrets> {
    try {
      return { values, redactor: await making, forgotten: hidden.forgotten }
    } catch (error) {
      throw error instanceof TooMuchToFind ? new SecretsTooLarge(TOO_MUCH) : error
    }
  }

  return {
    async read(agentRun) {
      const { run, epoch, secrets } = agentRun.offer
      note(agentRun.offer)
      if (!secrets && !given.has(run)) return undefined
      const values = secrets ? await readNow(agentRun, { unwanted: agentRun.unwanted, deadlineMs }) : {}
      if (isNewerHere(run, epoch)) throw new SecretsNotNow(TWICE)
      assertSize(values)
      agentRun.secretBytes = bytesOf(Object.values(values))
      const hidden = given.add(run, values)
      return hiding(values, hidden, hold(run, hidden.values))
    },
    async readAgain(agentRun, reported, signal) {
      const { run, secrets, variables } = agentRun.offer
      const values = Object.fromEntries(Object.entries(reported).filter(([name, value]) => variables[name] !== value))
      assertWasGiven(values, agentRun.secretBytes)
      if (!secrets && Object.keys(values).length === 0) return undefined
      note(agentRun.offer)
      given.add(run, values)
      const found = secrets ? await readNow(agentRun, { unwanted: signal, deadlineMs: AGAIN_MS }) : {}
      given.add(run, found)
      if (!unconfirmed.add(run, unconfirmedOf(values, found)))
        throw new SecretsDoubtful('there is no room for what programs say they were given, and would not be given now')
      // What the program has comes before what the next process will have: there may not be room for both.
      const hidden = given.add(run, values)
      return hiding(values, hidden, redactors.holdAnyway(run, hidden.values))
    },
    onOldToken(ask) {
      askForToken = ask
    },
    rests(run, epoch) {
      if (isNewerHere(run, epoch)) return
      newest.delete(run)
      unconfirmed.drop(run)
      redactors.release(run)
      given.rests(run)
    },
    forget(run) {
      newest.delete(run)
      unconfirmed.drop(run)
      redactors.release(run)
      given.forget(run)
    },
  }
}

function assertSize(values: Readonly<Record<string, string>>): void {
  const bytes = bytesOf(Object.values(values))
  if (bytes <= MOST_BYTES) return
  throw new SecretsTooLarge(
    `The secrets of the run have ${bytes} bytes in all, and ${MOST_BYTES} are allowed. ${ELSEWHERE}`,
  )
}

/** A program can say anything, and what is made of it takes hundreds of times the memory. */
function assertWasGiven(values: Readonly<Record<string, string>>, givenBytes: number): void {
  const bytes = bytesOf(Object.values(values))
  if (bytes <= givenBytes) return
  throw new SecretsDoubtful(`it says that its secrets have ${bytes} bytes, and it was given ${givenBytes}`)
}

function unconfirmedOf(values: RunSecrets['values'], found: RunSecrets['values']): string[] {
  return Object.entries(values).flatMap(([name, value]) => (found[name] === value ? [] : [value]))
}

interface Within {
  unwanted: AbortSignal
  deadlineMs: number
  askForToken: () => void
}

async function readWithRetries(
  rest: Pick<Rest, 'secrets'>,
  { offer }: AgentRun,
  { unwanted, deadlineMs, askForToken }: Within,
): Promise<Record<string, string>> {
  const deadline = performance.now() + deadlineMs
  for (let failures = 0; ; failures++) {
    // The token of the moment: a renewal may have come meanwhile.
    const { token } = offer
    try {
      return await rest.secrets(offer.run, token, unwanted)
    } catch (error) {
      const isOld = isOldToken(error)
      if (!isOld && !isPassing(error)) throw new Error(textOf(error), { cause: error })
      const waitMs = backoffMs(failures, isOld ? REFUSED_BACKOFF : BACKOFF)
      if (unwanted.aborted || performance.now() + waitMs > deadline)
        throw new SecretsNotNow(textOf(error), { cause: error })
      if (isOld && offer.token === token) askForToken()
      await pause(waitMs, unwanted)
    }
  }
}

function isPassing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  return PASSING.includes(error.code) || error.status === 429 || error.status >= 500
}

function isOldToken(error: unknown): boolean {
  return error instanceof ApiError && error.code === OLD_TOKEN
}

function textOf(error: unknown): string {
  return `The secrets of the run could not be read: ${error instanceof Error ? error.message : String(error)}`
}
