import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { Paces } from '../paces.ts'
import { openStatusFile } from '../status/status-file.ts'
import { markOf, statusNow } from '../status/status-now.ts'
import type { Who } from '../status/status-now.ts'

/** A file that is older than some of these was left by an agent that is gone. */
const EVERY_MS = 10_000

type StatusNeeds = Needs<typeof statusNow | typeof markOf> & {
  config: { home: string; paces: Pick<Paces, 'statusMs'> }
  log: Log
}

/** Keeps the status file true, until the last word in it is that the agent has stopped. */
export async function statusLoop(deps: StatusNeeds, who: Who, signal: AbortSignal): Promise<void> {
  const file = openStatusFile(deps.config.home, deps.log)
  let mark: string | undefined
  let writtenAt = -Infinity
  while (!signal.aborted) {
    const now = markOf(deps)
    if (now !== mark || performance.now() - writtenAt >= EVERY_MS) {
      file.write(statusNow(deps, who))
      mark = now
      writtenAt = performance.now()
    }
    await pause(deps.config.paces.statusMs, signal)
  }
  file.write({ ...statusNow(deps, who), state: 'stopped' })
}
