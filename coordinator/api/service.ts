import { Fault } from '@windlass/shared/errors.ts'
import { within } from '@windlass/shared/time.ts'
import manifest from '../package.json' with { type: 'json' }
import { type HandlersFor, JsonText } from './call.ts'
import { openApiDocument } from './openapi.ts'

/** A probe that waits longer has been given up by whoever sent it. */
const READY_MS = 2000

let openApi: JsonText | undefined

export const service: HandlersFor<'service'> = {
  health: () => ({ status: 'ok', version: manifest.version, uptimeMs: Math.round(performance.now()) }),

  ready: async ({ deps }) => {
    try {
      await within(READY_MS, deps.db`select 1`, 'The database does not answer')
    } catch (error) {
      deps.log.warn('service.notReady', { error })
      throw new Fault('UNAVAILABLE')
    }
    return { status: 'ready' }
  },

  openapi: () => (openApi ??= new JsonText(JSON.stringify(openApiDocument(manifest.version)))),
}
