import { hash } from 'node:crypto'
import { Fault } from '@windlass/shared/errors.ts'
import { SDK_PACKAGES_FILE } from '@windlass/shared/model/sdk-packages.ts'
import { SCOPES } from '@windlass/shared/scopes.ts'
import { within } from '@windlass/shared/time.ts'
import type { Log } from '@windlass/shared/log.ts'
import manifest from '../package.json' with { type: 'json' }
import { installScript } from '../downloads/install-script.ts'
import { SUMS } from '../downloads/sums.ts'
import { createSample } from '../limits/sample.ts'
import { assertMayScrape } from '../metrics/access.ts'
import { MCP_PATH } from './base-url.ts'
import { BytesAnswer, FileAnswer, type HandlersFor } from './call.ts'
import { docsFile, docsPage } from './docs.ts'
import { workflowFileSchema } from './workflow-schema.ts'
import { TAKES_NO_WRITES } from '../db/read-only.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import type { Reach } from '../db/reach.ts'
import type { Dispatchers } from '../dispatch/dispatcher.ts'
import type { Downloads } from '../downloads/downloads.ts'
import type { DownloadSeats } from '../limits/download-seats.ts'
import type { FactReader } from '../metrics/facts.ts'
import type { Packages } from '../downloads/packages.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Sockets } from '../agent-link/sockets.ts'

/** A probe that waits longer has been given up by whoever sent it. */
const READY_MS = 2000
const TEXT = 'text/plain; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'

/** Probes need no credential. */
const unanswered = createSample()

let workflowSchema: BytesAnswer | undefined

/** Loaded when it is first asked for: no start needs it, with all its examples. */
function openApiAnswers(deps: { config: Config }): () => Promise<BytesAnswer> {
  const make = async () => {
    const { openApiDocument } = await import('./openapi.ts')
    return unchanging(openApiDocument(manifest.version, deps.config.baseUrl))
  }
  let made: Promise<BytesAnswer> | undefined
  return () => (made ??= make())
}

/** Read and hashed once: a megabyte for each of many readers, who need no credential, would hold everybody up. */
function unchanging(value: unknown): BytesAnswer {
  const bytes = Buffer.from(JSON.stringify(value))
  return new BytesAnswer(bytes, JSON_TYPE, { etag: `"${hash('sha1', bytes, 'base64url')}"` })
}

type ServiceNeeds = {
  config: Config
  db: Db
  dispatchers: Dispatchers
  downloads: Downloads
  downloadSeats: DownloadSeats
  facts: FactReader
  log: Log
  metrics: Metrics
  packages: Packages
  reach: Pick<Reach, 'assert'>
  sockets: Sockets
}

export const service = (deps: ServiceNeeds): HandlersFor<'service'> => ({
  health: () => ({
    status: 'ok',
    version: manifest.version,
    uptimeMs: Math.round(performance.now()),
    tz: process.versions.tz ?? '',
    baseUrl: deps.config.baseUrl ?? null,
  }),

  ready: async () => {
    try {
      deps.reach.assert()
      const looking = deps.db<{ isReadOnly: boolean }[]>`
        select current_setting('transaction_read_only') = 'on' as is_read_only`
      const [row] = await within(READY_MS, looking, 'The database does not answer')
      if (row?.isReadOnly) throw new Fault('UNAVAILABLE', undefined, TAKES_NO_WRITES)
    } catch (error) {
      const facts = unanswered('ready')
      if (facts) deps.log.warn('service.notReady', { error, ...facts })
      throw error instanceof Fault ? error : new Fault('UNAVAILABLE')
    }
    return { status: 'ready' }
  },

  metrics: async (call) => {
    assertMayScrape({ address: call.peer, header: (name) => call.header(name) }, deps.config)
    const facts = await within(READY_MS, deps.facts(), 'The database does not answer').catch((error: unknown) => {
      const facts = unanswered('metrics')
      if (facts) deps.log.warn('service.noMetrics', { error, ...facts })
      throw new Fault('UNAVAILABLE')
    })
    const presence = { agents: deps.sockets.ids().length, polls: deps.dispatchers.waiting() }
    const text = await deps.metrics.text(facts, presence)
    return new BytesAnswer(Buffer.from(text), deps.metrics.contentType)
  },

  openapi: openApiAnswers(deps),

  docs: () => docsPage(),

  docsFile: ({ input }) => docsFile(input.file),

  install: async (call) => {
    const text = await installScript(call.base, manifest.version)
    // Whoever reads the script asks for an archive next.
    deps.downloads.prepare()
    return new BytesAnswer(Buffer.from(text), 'text/x-shellscript; charset=utf-8')
  },

  download: async ({ input: { file }, address }) => {
    if (file === SUMS) return new BytesAnswer(Buffer.from(await deps.downloads.sums()), TEXT)
    if (file === SDK_PACKAGES_FILE)
      return new BytesAnswer(Buffer.from(JSON.stringify(await deps.packages.current())), JSON_TYPE)
    const found = (await deps.packages.find(file)) ?? (await deps.downloads.find(file))
    if (!found) throw new Fault('NOT_FOUND', { file })
    const contentType = /\.t?gz$/.test(file) ? 'application/gzip' : TEXT
    return new FileAnswer(found.path, contentType, `"${found.sha256}"`, (giveWay) =>
      deps.downloadSeats.take(address, giveWay),
    )
  },

  workflowSchema: () => (workflowSchema ??= unchanging(workflowFileSchema())),

  protectedResource: ({ base }) => ({
    resource: `${base}${MCP_PATH}`,
    resource_name: 'Windlass',
    bearer_methods_supported: ['header'],
    scopes_supported: SCOPES,
    resource_documentation: `${base}/v1/docs`,
  }),
})
