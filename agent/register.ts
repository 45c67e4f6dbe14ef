import { realpath } from 'node:fs/promises'
import type { Log } from '@windlass/shared/log.ts'
import type { AgentConfig } from './config.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { knownIdentity, makeStateFolder, obtainIdentity } from './identity.ts'
import type { Identity } from './identity.ts'
import { assertPrivate } from './plain-http.ts'
import { lockState } from './state-lock.ts'

/** Whoever installs is waiting. */
const PATIENCE_MS = 60_000

/** Registers and does nothing else, so that the token is never with the daemon. One that is registered stays who it is. */
export async function registerAgent(config: AgentConfig, log: Log): Promise<{ identity: Identity; isNew: boolean }> {
  assertPrivate(config)
  const known = knownIdentity(config.home)
  if (known) return { identity: known, isNew: false }
  await makeStateFolder(config.home)
  const home = await realpath(config.home)
  const lock = await lockState(home)
  const patience = AbortSignal.timeout(PATIENCE_MS)
  try {
    return { identity: await obtainIdentity({ ...config, home }, log, patience), isNew: true }
  } catch (error) {
    if (!patience.aborted) throw error
    const message = `The coordinator at ${config.url} has not answered within ${PATIENCE_MS / 1000} s; \`curl -f ${config.url}/healthz\` from here shows why.`
    throw new AgentRefusal(EXIT.internal, message, { cause: error })
  } finally {
    await lock.release()
  }
}
