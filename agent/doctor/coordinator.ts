import { callOp } from '@windlass/shared/ops/call.ts'
import { rows as service } from '@windlass/shared/ops/service/ops.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Identity } from '../identity.ts'
import { createClock, withClock } from '../link/clock.ts'
import type { Clock } from '../link/clock.ts'
import { credentialOf } from '../link/credential.ts'
import { CONNECT_MS, openSocket, OTHER_KEY_ADVICE } from '../link/socket.ts'
import type { Socket, SocketEnd } from '../link/socket.ts'
import { VERSION } from '../version.ts'
import { fail, ok, skipped, warn } from './finding.ts'
import type { Answer, Question } from './finding.ts'

const DAY_MS = 86_400_000
const IDLE_MS = 35_000
const CALL_MS = 9_000

export interface Whom {
  url: string
  /** Nothing while it is not registered. */
  identity: Identity | undefined
  /** Also what takes half a minute. */
  isSlow: boolean
}

/** What the coordinator says to us. Nothing of it takes work or changes anything there. */
export function coordinatorQuestions({ url, identity, isSlow }: Whom): Question[] {
  const seen: Seen = { clock: createClock(), version: undefined, baseUrl: undefined }
  const questions: Question[] = [
    { check: 'http', after: 'tls', ask: (signal) => askHealth(url, seen, signal) },
    { check: 'clock', after: 'http', ask: () => judgeClock(seen.clock) },
    { check: 'version', after: 'http', ask: () => judgeVersion(url, seen.version) },
    { check: 'base url', after: 'http', ask: () => judgeBaseUrl(seen.baseUrl) },
    { check: 'websocket', after: 'http', ask: (signal) => askUpgrade({ url, identity, clock: seen.clock }, signal) },
  ]
  const slow: Question = {
    check: 'idle',
    after: 'websocket',
    deadlineMs: IDLE_MS + CALL_MS,
    ask: (signal) => askIdle({ url, identity, clock: seen.clock }, signal),
  }
  return isSlow ? [...questions, slow] : questions
}

/** What the first answer tells, for the questions after it. */
interface Seen {
  clock: Clock
  version: string | undefined
  /** Null when it is not set; a coordinator of before does not tell. */
  baseUrl: string | null | undefined
}

async function askHealth(url: string, seen: Seen, signal: AbortSignal): Promise<Answer> {
  try {
    const base = { url, fetch: withClock(seen.clock) }
    const { version, tz, baseUrl } = await callOp(base, service.health, {}, { signal, deadlineMs: CALL_MS })
    seen.version = version
    seen.baseUrl = baseUrl
    return ok(`${url} is a coordinator of version ${version}, with time zone data ${tz}`)
  } catch (error) {
    signal.throwIfAborted()
    // Not the cause of it: the error itself says what the address has answered.
    const message = error instanceof Error ? error.message : String(error)
    return fail(message, 'see that WINDLASS_URL is the address of the coordinator, and that it runs')
  }
}

/** The agent goes by the coordinator's clock in all that it signs; the certificates of TLS and a person's log do not. */
function judgeClock({ offsetMs }: Clock): Answer {
  if (offsetMs === 0) return ok('it goes with that of the coordinator, within some seconds')
  const length = Math.abs(offsetMs)
  const way = offsetMs < 0 ? 'ahead of' : 'behind'
  const message = `The clock of this machine is ${lengthOf(length)} ${way} that of the coordinator.`
  const fix = 'let it be set by the network: timedatectl set-ntp true'
  return length > DAY_MS ? fail(message, fix) : warn(message, fix)
}

function lengthOf(ms: number): string {
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`
  return ms < 2 * DAY_MS ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / DAY_MS)} days`
}

function judgeVersion(url: string, theirs: string | undefined): Answer {
  if (theirs === undefined || theirs === VERSION) return ok(`${VERSION}, as the coordinator`)
  const message = `The agent is ${VERSION} and the coordinator ${theirs}.`
  if (isOlder(theirs, VERSION)) return warn(message, 'the coordinator should be upgraded first, as ever')
  return warn(message, `curl -fsSL ${url}/install.sh | sh -s -- --upgrade`)
}

function isOlder(one: string, other: string): boolean {
  return one.localeCompare(other, 'en', { numeric: true }) < 0
}

/** An agent works without; whoever copies the address of a webhook from here finds out with the provider only. */
function judgeBaseUrl(baseUrl: string | null | undefined): Answer {
  if (baseUrl === undefined) return skipped('this coordinator does not say; a newer one does')
  if (baseUrl !== null) return ok(`addresses of webhooks and connections begin with ${baseUrl}`)
  return warn(
    'WINDLASS_BASE_URL of the coordinator is not set: addresses of webhooks and connections are shown as you reach it.',
    'set WINDLASS_BASE_URL on the coordinator to the address by which GitHub, Stripe and the like reach it',
  )
}

/**
 * Opens the socket of the agent with its own signature and closes it again without a word, so that an agent that runs
 * beside is not disturbed.
 */
async function askUpgrade(dialling: Dialling, signal: AbortSignal): Promise<Answer> {
  const { identity } = dialling
  const { opened, end, close } = await dial(dialling, signal)
  const isOpen = await Promise.race([opened, end.then(() => false)])
  close()
  if (isOpen) return ok(`the upgrade passes, and the coordinator knows this agent (${identity?.runner ?? ''})`)
  const how = await end
  if (!identity && how.why === 'unauthenticated')
    return skipped('the coordinator answers; whether the upgrade passes shows once the agent is registered')
  if (how.why === 'unauthenticated' && how.isOtherKey)
    return fail(`The coordinator knows this runner (${identity?.runner ?? ''}) by another key.`, OTHER_KEY_ADVICE)
  if (how.why === 'unauthenticated')
    return fail(
      `The coordinator does not know this agent (${identity?.runner ?? ''}).`,
      'it was revoked or forgotten, or WINDLASS_URL names another coordinator: windlass pools token <pool> makes a token to register anew',
    )
  // Nothing else is refused before an agent has said who it is.
  if (how.why === 'refused')
    return fail(
      `This agent (${identity?.runner ?? ''}) was revoked: ${how.frame.message}`,
      'windlass pools token <pool> makes a token to register anew, in an empty state folder',
    )
  return fail(
    `The WebSocket does not open: ${how.detail}.`,
    'a proxy in between has to pass the headers Upgrade and Connection on, and HTTP/1.1',
  )
}

async function askIdle(dialling: Dialling, signal: AbortSignal): Promise<Answer> {
  const { opened, end, close } = await dial(dialling, signal)
  try {
    if (!(await Promise.race([opened, end.then(() => false)])))
      return fail('The WebSocket did not open again.', 'ask again')
    const startedAt = performance.now()
    const cut = await Promise.race([end, pause(IDLE_MS, signal)])
    if (!cut) return ok(`a connection that carries nothing but pings lives for ${IDLE_MS / 1000} s`)
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    return fail(
      `A connection that carries nothing but pings is cut after ${seconds} s.`,
      'proxies in between have to leave WebSockets open: raise their read timeout to an hour or more, and let polls of 25 s pass',
    )
  } finally {
    close()
  }
}

interface Dialling {
  url: string
  identity: Identity | undefined
  clock: Clock
}

interface Dialled {
  /** Resolves with true when it is open. */
  opened: Promise<boolean>
  end: Promise<SocketEnd>
  close: () => void
}

async function dial({ url, identity, clock }: Dialling, signal: AbortSignal): Promise<Dialled> {
  const token = identity ? await (await credentialOf(identity, clock))() : 'none'
  const { promise: opened, resolve } = Promise.withResolvers<boolean>()
  const socket: Socket = openSocket({
    url,
    token,
    connectMs: CONNECT_MS,
    onOpen: () => resolve(true),
    onFrame: () => undefined,
  })
  const close = () => socket.close('only looking')
  signal.addEventListener('abort', close, { once: true })
  return { opened, end: socket.ended, close }
}
