import type { Log } from '@windlass/shared/log.ts'
import { type Bounds, type Child, startChild } from './child.ts'
import { type OwnUser, ownUser } from './own-user.ts'

/** By program: what was found out holds for as long as this process. */
const settled = new Map<string, Promise<OwnUser>>()

export interface Confined extends Bounds {
  /** Names the pool in the log. */
  name: 'judging'
  entry: URL
  log: Log
}

/** A machine may have a bad moment, and what is found out holds for long. */
const TRIES = 3

/**
 * Starts children under a user of their own, where one of them comes up so: whatever a customer finds to have executed
 * in one, it reads neither keys nor memory of the coordinator.
 */
export async function startConfined<P, A>({ name, entry, log, ...bounds }: Confined): Promise<Child<P, A>> {
  let known = settled.get(entry.href)
  if (!known) {
    known = settle(name, entry, { log, ...bounds })
    settled.set(entry.href, known)
  }
  const { user } = await known
  return startChild(entry, { ...bounds, ...(user && { user }) })
}

async function settle(name: Confined['name'], entry: URL, { log, ...bounds }: Bounds & { log: Log }): Promise<OwnUser> {
  const own = await found()
  if (own.user) log(`${name}.confined`, { by: 'user', uid: own.user.uid })
  else log(`${name}.confined`, { by: 'process', why: own.why })
  return own

  async function found(): Promise<OwnUser> {
    const user = await ownUser(name, [entry])
    if (!user.user) return user
    for (let tries = 1; ; tries++) {
      try {
        await (await startChild(entry, { ...bounds, user: user.user })).end()
        return user
      } catch (error) {
        if (tries === TRIES) return { user: undefined, why: (error as Error).message }
      }
    }
  }
}
