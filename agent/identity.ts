import { createHash } from 'node:crypto'
import { chmod, mkdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { exportJWK, generateKeyPair } from 'jose'
import type { JWK } from 'jose'
import { z } from 'zod'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { rows as runnerSurface } from '@windlass/shared/ops/runner-surface/ops.ts'
import { isOurs } from '@windlass/shared/ops/whose-answer.ts'
import type { Log } from '@windlass/shared/log.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { hostOf } from './instance.ts'
import { readOrNothing } from './os/process-id.ts'
import { VERSION } from './version.ts'
import { writePrivately } from './write-privately.ts'
import type { AgentConfig } from './config.ts'

/** Who this agent is. The private key was made here and never leaves the state folder. */
export interface Identity {
  runner: string
  org: string
  pool: string
  privateKey: JWK
  /** Made to follow it; the coordinator may know it already. */
  nextKey?: JWK
  /** Since when it signs with its key, by the clock of this machine; agents of before did not write it down. */
  keyAt?: number
  /** The newest first; agents of before did not keep them. */
  formerKeys?: FormerKey[]
}

interface FormerKey {
  key: JWK
  /** When the next one took over, by the clock of this machine. */
  until: number
}

/** Registers with the token on the first start; later ones find the identity in the state folder. */
export async function obtainIdentity(config: AgentConfig, log: Log, signal: AbortSignal): Promise<Identity> {
  const known = knownIdentity(config.home)
  const firstKeyFile = path.join(config.home, 'first-key.json')
  if (known) {
    // We may have been killed after the identity was written.
    await rm(firstKeyFile, { force: true })
    return known
  }
  if (config.token === undefined) throw new AgentRefusal(EXIT.config, NEEDS_TOKEN)
  const privateKey = await firstKey(firstKeyFile, config.home, config.token)
  const answer = await register(config, config.token, publicHalf(privateKey), log, signal).catch(
    async (error: unknown) => {
      // It is registered nowhere.
      if (error instanceof AgentRefusal && error.exitCode === EXIT.refused) await rm(firstKeyFile, { force: true })
      throw error
    },
  )
  const { runner, org, pool } = answer
  const identity = { runner, org, pool, privateKey, keyAt: Date.now() }
  // A registration token serves once, so the answer to it must survive a power cut.
  await writePrivately(identityFile(config.home), JSON.stringify(identity))
  await rm(firstKeyFile, { force: true })
  log('agent.registered', { runner: identity.runner, org: identity.org, pool: identity.pool })
  return identity
}

/** Both halves are 32 bytes: one that is cut short is none. */
const HalfKey = z.string().regex(/^[\w-]{43}$/)
const WholeKey = z.looseObject({ x: HalfKey, d: HalfKey })
const FirstKey = z.object({ of: z.string(), privateKey: WholeKey })
const Saved = z.looseObject({
  runner: z.string().min(1),
  privateKey: WholeKey,
  nextKey: WholeKey.optional(),
  formerKeys: z.array(z.looseObject({ key: WholeKey })).optional(),
})

/**
 * On disk before it is asked for: when the answer is lost, or we are killed before we have it, the coordinator answers
 * the same token and key as it did before. Of a host and a token, so that copies of a folder that is not registered yet
 * share no key on another host.
 */
async function firstKey(file: string, home: string, token: string): Promise<JWK> {
  const of = createHash('sha256')
    .update(`${token} ${await hostOf(home)}`)
    .digest('base64url')
  const found = readFirstKey(file)
  if (found?.of === of) return found.privateKey
  const { privateKey } = await makeKeys()
  await writePrivately(file, JSON.stringify({ of, privateKey }))
  return privateKey
}

/** Undefined where it is damaged too: nobody is registered with it for certain. */
function readFirstKey(file: string): z.output<typeof FirstKey> | undefined {
  try {
    return FirstKey.parse(JSON.parse(readOrNothing(file) ?? 'null'))
  } catch {
    return undefined
  }
}

/** Where an agent with this state folder keeps who it is. */
export function identityFile(home: string): string {
  return path.join(home, 'identity.json')
}

/** Nothing while the agent of this state folder has not been registered. */
export function knownIdentity(home: string): Identity | undefined {
  const file = identityFile(home)
  const text = readOrNothing(file)
  return text === undefined ? undefined : parseIdentity(file, text)
}

const NEEDS_TOKEN =
  'This agent is not registered yet: set WINDLASS_AGENT_TOKEN to a registration token (`windlass pools token <pool>` makes one).'

/** A key pair of an agent. */
export async function makeKeys() {
  const pair = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })
  const privateKey = await exportJWK(pair.privateKey)
  return { privateKey, publicKey: publicHalf(privateKey) }
}

export interface PublicKey {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
}

export function publicHalf({ x }: JWK): PublicKey {
  if (x === undefined) throw new Error('The key pair has no public half')
  return { kty: 'OKP', crv: 'Ed25519', x }
}

/** Waits for a coordinator that is not there yet, whoever answers in its place; what it refuses is not asked twice. */
async function register(
  config: AgentConfig,
  token: string,
  publicKey: PublicKey,
  ...[log, signal]: [Log, AbortSignal]
) {
  const { name, labels, slots } = config
  const platform = `${process.platform}-${process.arch}`
  const args = { token, name, publicKey, labels, slots, version: VERSION, platform }
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      return joined(await callOp({ url: config.url }, runnerSurface.register, args, { signal }), config.url)
    } catch (error) {
      if (signal.aborted) break
      if (!(error instanceof ApiError)) throw error
      if (isRefusal(error)) throw refused(error)
      log.warn('agent.register.waiting', { url: config.url, reason: error.message })
    }
    await pause(backoffMs(failures, { firstMs: 250, capMs: 30_000 }), signal)
  }
  throw new AgentRefusal(EXIT.stopped, 'Stopped before the agent was registered.')
}

const Joined = z.looseObject({ runner: z.string().min(1), org: z.string(), pool: z.string() })

/** JSON of a proxy would be kept as who this agent is. */
function joined<T>(answer: T, url: string): T {
  if (Joined.safeParse(answer).success) return answer
  throw new ApiError(`${url} answered with something that is no registration`, { status: 200, code: 'BAD_ANSWER' })
}

function isRefusal(error: ApiError): boolean {
  return isOurs(error) && error.status >= 400 && error.status < 500 && error.status !== 429
}

function refused(error: ApiError): AgentRefusal {
  // Another token would not make room.
  const advice =
    error.code === 'CONFLICT'
      ? 'Then start the agent again.'
      : 'Mint a new token with `windlass pools token <pool>` and start the agent with it.'
  return new AgentRefusal(EXIT.refused, `Registration was refused: ${error.message} ${advice}`, { cause: error })
}

function parseIdentity(file: string, text: string): Identity {
  try {
    const identity: unknown = JSON.parse(text)
    if (Saved.safeParse(identity).success) return identity as Identity
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new AgentRefusal(EXIT.config, `${file} is damaged: remove it and register again with WINDLASS_AGENT_TOKEN.`)
}

/**
 * The folder of all state. Others on the host have no business in it: it holds the key and every run's files. Users of
 * runs may pass it where it is open to them: programs of an agent before this one may live on.
 */
export async function makeStateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { mode } = await stat(folder)
  if ((mode & 0o066) !== 0) await chmod(folder, mode & 0o711)
}
