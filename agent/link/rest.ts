import { callOp, openOp } from '@windlass/shared/ops/call.ts'
import { rows as runnerSurface } from '@windlass/shared/ops/runner-surface/ops.ts'
import { offersOf } from '@windlass/shared/wire/offers.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { assertType } from '@windlass/shared/ops/whose-answer.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { withClock } from './clock.ts'
import type { Clock } from './clock.ts'
import type { Credential } from './credential.ts'
import { createPollFetch } from './poll-fetch.ts'
import { createSilence, hearPieces } from './silence.ts'

interface BundleBody {
  /** The first byte that comes. */
  from: number
  body: ReadableStream<Uint8Array>
}

/** What the agent asks of the coordinator over HTTP. */
export interface Rest {
  claims(slots: number, waitMs: number, signal: AbortSignal): Promise<Offer[]>
  /** From this byte on; an older coordinator answers all of it. */
  bundle(digest: string, from: number, signal: AbortSignal): Promise<BundleBody>
  /** JSON text of the records, given out as it comes. */
  journal(run: string, epoch: number, signal: AbortSignal, onBytes: (bytes: Buffer) => void): Promise<void>
  /** By name, as they are now. `token` is that of the run. */
  secrets(run: string, token: string, signal: AbortSignal): Promise<Record<string, string>>
  /** Resolves when the coordinator has taken it in place of the key that signs at present. */
  renewKey(publicKey: { kty: 'OKP'; crv: 'Ed25519'; x: string }, signal: AbortSignal): Promise<void>
}

/** A poll is answered after `waitMs` at the latest; a silence beyond that is a lost connection. */
const POLL_SLACK_MS = 10_000
const BUNDLE_HEADERS_MS = 20_000
/** So many bytes of a journal have so long. It may have 32 MiB and more, five minutes on a line of 1 Mbit/s. */
const JOURNAL_SILENCE = { ms: 20_000, bytes: 16 * 1024 }
const SECRETS_MS = 10_000
const RENEW_KEY_MS = 20_000

export function createRest(url: string, credential: Credential, clock: Clock): Rest {
  const pollFetch = withClock(clock, createPollFetch())
  const base = { url, fetch: withClock(clock) }
  const headers = async () => ({ authorization: `Bearer ${await credential()}` })
  return {
    async claims(slots, waitMs, signal) {
      const options = { signal, deadlineMs: waitMs + POLL_SLACK_MS, headers: await headers() }
      return offersOf(await callOp({ url, fetch: pollFetch }, runnerSurface.claims, { slots, waitMs }, options))
    },
    async bundle(digest, from, signal) {
      const part: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {}
      const options = { signal, deadlineMs: BUNDLE_HEADERS_MS, headers: { ...(await headers()), ...part } }
      const answer = await openOp(base, runnerSurface.bundle, { digest }, options)
      assertType(answer, 'application/gzip', 'a bundle')
      const { status, body, headers: given } = answer
      if (!body) throw new Error(`The answer with bundle ${digest} has no body`)
      if (status !== 206) return { from: 0, body }
      const range = given.get('content-range') ?? ''
      if (!range.startsWith(`bytes ${from}-`))
        throw new Error(`The bundle was asked for from byte ${from} on: ${range}`)
      return { from, body }
    },
    async journal(run, epoch, signal, onBytes) {
      const silence = createSilence(JOURNAL_SILENCE.ms, JOURNAL_SILENCE.bytes)
      const ends = AbortSignal.any([signal, silence.signal])
      try {
        const options = { signal: ends, headers: await headers() }
        const answer = await openOp(base, runnerSurface.journal, { run, epoch }, options)
        assertType(answer, 'application/json', 'a journal')
        await hearPieces(answer.body, silence, onBytes)
      } finally {
        silence.end()
      }
    },
    async secrets(run, token, signal) {
      const options = { signal, deadlineMs: SECRETS_MS, headers: { authorization: `Bearer ${token}` } }
      const { secrets } = await callOp(base, runnerSurface.secrets, { run }, options)
      if (typeof secrets !== 'object') throw notOurs(url, 'secrets')
      return secrets
    },
    async renewKey(publicKey, signal) {
      const options = { signal, deadlineMs: RENEW_KEY_MS, headers: await headers() }
      const { runner } = await callOp(base, runnerSurface.renew, { publicKey }, options)
      if (typeof runner !== 'string') throw notOurs(url, 'a new key')
    },
  }
}

/** JSON of a proxy, such as how it is, would be taken for an answer without anything in it. */
function notOurs(url: string, what: string): ApiError {
  return new ApiError(`${url} answered with something that is not about ${what}`, { status: 200, code: 'BAD_ANSWER' })
}
