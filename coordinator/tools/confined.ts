import type { Log } from '@windlass/shared/log.ts'
import { type Bounds, type Child, startChild } from './child.ts'
import { type OwnUser, ownUser } from './own-user.ts'

/** By program: what was found out holds for as long as this process. */
const settled = new Map<string, OwnUser>()

export interface Confined extends Bounds {
  /** Names the pool in the log: `judging`. */
  name: string
  entry: URL
  log: Log
}

/**
 * Starts children under a user of their own, where one of them comes up so: whatever a customer finds to have executed
 * in one, it reads neither keys nor memory of the coordinator.
 */
export async function startConfined<P, A>({ name, entry, log, ...bounds }: Confined): Promise<Child<P, A>> {
  const known = settled.get(entry.href)
  if (known) return startAs(known)
  const own = await ownUser([entry])
  try {
    const child = await startAs(own)
    settle(own)
    return child
  } catch (error) {
    if (!own.user) throw error
    const none: OwnUser = { user: undefined, why: (error as Error).message }
    const child = await startAs(none)
    settle(none)
    return child
  }

  function startAs({ user }: OwnUser): Promise<Child<P, A>> {
    return startChild(entry, { ...bounds, ...(user && { user }) })
  }

  function settle(found: OwnUser): void {
    // Another has settled it meanwhile.
    if (settled.has(entry.href)) return
    settled.set(entry.href, found)
    if (found.user) log(`${name}.confined`, { by: 'user', uid: found.user.uid })
    else log(`${name}.confined`, { by: 'process', why: found.why })
  }
}
