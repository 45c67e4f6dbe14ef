import type { Db } from '../db/client.ts'
import type { Sockets } from '../agent-link/sockets.ts'
import { wakesFor } from '../engine/commit/wakes.ts'

/**
 * Sends what its programs wait for to this runner, if it is connected here. It is looked up once for all who ask while
 * the look before has not ended.
 */
export async function tellWakes({ db, sockets }: { db: Db; sockets: Sockets }, runnerId: string): Promise<void> {
  const orgId = sockets.orgOf(runnerId)
  if (orgId === undefined) return
  await sockets.wakes.share(runnerId, orgId, async () => {
    // It may have gone while others had their turns.
    if (sockets.orgOf(runnerId) === undefined) return
    const runs = await wakesFor(db, runnerId)
    if (runs.length > 0) sockets.tell(runnerId, { t: 'wake', runs })
  })
}
