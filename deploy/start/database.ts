import { type EmbeddedPostgres, startEmbedded } from '@windlass/coordinator/db/embedded.ts'
import { createLog } from '@windlass/shared/log.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { StartSettings } from './settings.ts'
import type { Teller } from './tell.ts'

export interface StartedDatabase {
  url: string
  stop(): Promise<void>
  /** Immediate shutdown, also while it is being stopped: the next start recovers what was committed. */
  end(): Promise<void>
}

const NOT_OURS = { stop: () => Promise.resolve(), end: () => Promise.resolve() }

/** The database that the settings name, or a server of our own that is started again whenever it dies. */
export async function startDatabase(settings: StartSettings, tell: Teller): Promise<StartedDatabase> {
  if (settings.databaseUrl) return { url: settings.databaseUrl, ...NOT_OURS }
  const log = createLog({ process: 'database' }, settings.json ? 'info' : 'error')
  const start = () => startEmbedded({ home: settings.home, log })
  let server: EmbeddedPostgres = await start()
  let isRestarting = false
  const stopping = new AbortController()
  const watch = keepUp()

  async function keepUp(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted;) {
      const ending = await server.exited
      if (stopping.signal.aborted) return
      tell.say(`The database ended (${ending.signal ?? `exit code ${ending.code}`}). Starting it again.`)
      isRestarting = true
      for (; !stopping.signal.aborted; failures++) {
        try {
          server = await start()
          failures = 0
          break
        } catch (error) {
          tell.fail((error as Error).message)
          await pause(backoffMs(failures, { firstMs: 200, capMs: 5000 }), stopping.signal)
        }
      }
      isRestarting = false
    }
  }

  async function takeDown(how: 'stop' | 'end'): Promise<void> {
    stopping.abort()
    // A server that is just being started again would otherwise come up after we have gone, and stay.
    if (isRestarting) await watch
    await server[how]()
    await watch
  }

  return { url: server.url, stop: () => takeDown('stop'), end: () => takeDown('end') }
}
