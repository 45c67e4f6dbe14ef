import { calculateJwkThumbprint } from 'jose'
import type { RunnerId } from '@windlass/shared/ids.ts'
import type { RunnerIdentity } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Deps } from '../deps.ts'
import { assertKey } from './register.ts'
import { renewKeyMs } from './settings.ts'
import { replaceKey } from './store-session.ts'

/** A new key for an agent, which it has made and keeps. The one before serves until the new one was used. */
export async function renewKey(
  deps: Pick<Deps, 'db' | 'config' | 'bell' | 'runnerKeys' | 'log'>,
  runner: RunnerIdentity,
  publicKey: Record<string, string>,
  requestId: string,
): Promise<{ runner: RunnerId; renewAfterMs: number }> {
  await assertKey(publicKey)
  const [former, next] = await Promise.all([thumbprint({ ...ED25519, x: runner.signedWith }), thumbprint(publicKey)])
  await deps.db.begin(async (tx) => {
    const isNew = await replaceKey(tx, runner.id, { signedWith: runner.signedWith, next: publicKey })
    if (!isNew) return
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

const ED25519 = { kty: 'OKP', crv: 'Ed25519' }

/** RFC 7638: tells keys apart, and is none. */
async function thumbprint(jwk: Record<string, string>): Promise<{ keyThumbprint: string }> {
  return { keyThumbprint: await calculateJwkThumbprint(jwk) }
}
