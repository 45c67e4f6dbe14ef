import type { Log } from '@windlass/shared/log.ts'
import { calculateJwkThumbprint } from 'jose'
import { Fault } from '@windlass/shared/errors.ts'
import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Bell } from '../events/bell.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import type { RunnerVerifier } from './identity.ts'
import type { RunnerIdentity } from '../actor.ts'
import { record } from '../audit/record.ts'
import { assertKey } from './register.ts'
import { renewKeyMs } from './settings.ts'
import { replaceKey } from './store-keys.ts'

/** Each new key is an entry in the audit log, which nobody may fill. An agent renews twenty times less often. */
const LEAST_SHARE = 0.05

/** A new key for an agent, which it has made and keeps. The one before serves until the new one was used. */
export async function renewKey(
  deps: { db: Db; config: Config; bell: Bell; runnerKeys: RunnerVerifier; log: Log },
  runner: RunnerIdentity,
  publicKey: Record<string, string>,
  requestId: string,
): Promise<{ runner: RunnerId; renewAfterMs: number }> {
  await assertKey(publicKey)
  const everyMs = renewKeyMs(deps.config) * LEAST_SHARE
  const [former, next] = await Promise.all([thumbprint({ ...ED25519, x: runner.signedWith }), thumbprint(publicKey)])
  await deps.db.begin(async (tx) => {
    const asked = { signedWith: runner.signedWith, next: publicKey, everyMs }
    const { isNew, ageMs } = await replaceKey(tx, runner.id, asked)
    if (!isNew) return
    if (ageMs < everyMs) throw tooSoon(runner, { ageMs, everyMs })
    const { id, name, orgId } = runner
    const by = { kind: 'system', id, name: 'the agent itself', orgId, via: 'runner', requestId } as const
    const target = { type: 'runner', id, name }
    await record(tx, by, { action: 'runners.renewKey', target, before: former, after: next })
  })
  deps.runnerKeys.forget(runner.id)
  deps.bell.ring('runner', runner.id)
  deps.log('runner.key.renewed', { runnerId: runner.id })
  return { runner: runner.id, renewAfterMs: renewKeyMs(deps.config) }
}

function tooSoon({ name }: RunnerIdentity, { ageMs, everyMs }: { ageMs: number; everyMs: number }): Fault {
  const retryAfterMs = Math.ceil(everyMs - ageMs)
  const message = [
    `The agent ${name} has had its key for ${seconds(ageMs)} and may take a new one once in ${seconds(everyMs)}: each`,
    `is written to the audit log. Its present key goes on to serve; try again in ${seconds(retryAfterMs)}.`,
  ].join(' ')
  return new Fault('RATE_LIMITED', { scope: 'key', retryAfterMs }, message)
}

const seconds = (ms: number) => `${Math.ceil(ms / 100) / 10} s`

const ED25519 = { kty: 'OKP', crv: 'Ed25519' }

/** RFC 7638: tells keys apart, and is none. */
async function thumbprint(jwk: Record<string, string>): Promise<{ keyThumbprint: string }> {
  return { keyThumbprint: await calculateJwkThumbprint(jwk) }
}
