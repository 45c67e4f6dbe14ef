import type { RunnerId } from '@windlass/shared/ids.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { assertKey } from './register.ts'
import { renewKeyMs } from './settings.ts'
import { replaceKey } from './store-session.ts'

/** A new key for an agent, which it has made and keeps. The one before serves until the new one was used. */
export async function renewKey(
  deps: Pick<Deps, 'db' | 'config' | 'bell' | 'runnerKeys' | 'log'>,
  runner: RunnerIdentity,
  publicKey: Record<string, string>,
): Promise<{ runner: RunnerId; renewAfterMs: number }> {
  await assertKey(publicKey)
  await replaceKey(deps.db, runner.id, { signedWith: runner.signedWith, next: publicKey })
  deps.runnerKeys.forget(runner.id)
  deps.bell.ring('runner', runner.id)
  deps.log('runner.key.renewed', { runnerId: runner.id })
  return { runner: runner.id, renewAfterMs: renewKeyMs(deps.config) }
}
