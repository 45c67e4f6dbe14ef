import type { Db } from '../db/client.ts'
import type { Sockets } from '../agent-link/sockets.ts'
import { wakesFor } from '../engine/commit/wakes.ts'

/** Sends what their programs wait for to those of these runners that are connected here. */
export async function tellWakes(deps: { db: Db; sockets: Sockets }, runnerIds: readonly string[]): Promise<void> {
  for (const [runnerId, runs] of await wakesFor(deps.db, runnerIds)) deps.sockets.tell(runnerId, { t: 'wake', runs })
}
