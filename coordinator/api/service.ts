import { Fault } from '@windlass/shared/errors.ts'
import { within } from '@windlass/shared/time.ts'
import manifest from '../package.json' with { type: 'json' }
import { assertMayScrape } from '../metrics/access.ts'
import { BytesAnswer, type HandlersFor, JsonText } from './call.ts'
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

  metrics: async (call) => {
    const { deps } = call
    assertMayScrape({ address: call.address, header: (name) => call.header(name) }, deps.config.metricsToken)
    const facts = await within(READY_MS, deps.facts(), 'The database does not answer').catch((error: unknown) => {
      deps.log.warn('service.noMetrics', { error })
      throw new Fault('UNAVAILABLE')
    })
    const presence = { agents: deps.sockets.ids().length, polls: deps.dispatchers.waiting() }
    const text = await deps.metrics.text(facts, presence)
    return new BytesAnswer(Buffer.from(text), deps.metrics.contentType)
  },

  openapi: () => (openApi ??= new JsonText(JSON.stringify(openApiDocument(manifest.version)))),

  docs: () => {
    throw new Fault('UNAVAILABLE')
  },
  docsFile: () => {
    throw new Fault('UNAVAILABLE')
  },
  workflowSchema: () => {
    throw new Fault('UNAVAILABLE')
  },
  protectedResource: () => {
    throw new Fault('UNAVAILABLE')
  },
}
