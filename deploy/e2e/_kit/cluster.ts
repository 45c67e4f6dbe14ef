import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { mintApiKey } from '@windlass/coordinator/test/_kit/credentials.ts'
import type { Database } from '@windlass/coordinator/db/client.ts'
import { type Client, createClient } from 'windlass/client'
import { testDatabase } from '../../../coordinator/test/_kit/database.ts'
import { type Part, startPart } from '../../start/part.ts'
import { endLeftovers, processesMarked } from '../../tools/leftovers.ts'
import { makeHome } from './instance.ts'
import { ENDED_MS, inherited } from './start-process.ts'

/** Coordinators over one database, without any agent. */
export interface Cluster {
  home: string
  database: Database
  /** One for each coordinator. */
  urls: readonly string[]
  /** Speaks to the first. */
  client: Client
  clients: readonly Client[]
  metric(name: string): Promise<number>
  /** The process of the coordinator with this number, from 0 on. One that is killed is started again. */
  pid(n: number): number
  stop(): Promise<void>
}

export interface ClusterOptions {
  coordinators?: number
  /** To listen on. */
  host?: string
  env?: Record<string, string>
  /** Of our own: a place for more than the coordinators. */
  home?: string
}

const METRICS_TOKEN = 'token-of-the-fleet-tests'
/** What becomes of a part is in its log. */
const SILENT = { json: true, say: () => undefined, fail: () => undefined, answer: () => undefined }

/** The timing of the design, divided by 25: what lasts 90 s there is over in 3.6 s here. */
export const SCALED = {
  WINDLASS_HEARTBEAT_MS: '400',
  WINDLASS_FENCE_MS: '2000',
  WINDLASS_LEASE_MS: '3000',
  WINDLASS_AMNESTY_MS: '500',
  WINDLASS_SWEEP_MS: '200',
  WINDLASS_OFFER_MS: '2000',
}
export const SCALE = 25

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { coordinators = 1, host = '127.0.0.1', env = {} } = options
  const temp = options.home === undefined ? makeHome() : { home: options.home, remove: () => undefined }
  const database = await testDatabase()
  const parts: Part[] = []
  const stop = async () => {
    await Promise.all(parts.map((part) => part.stop()))
    endLeftovers(processesMarked(temp.home))
    temp.remove()
    await database.close()
  }
  try {
    const urls: string[] = []
    for (let n = 1; n <= coordinators; n++) {
      const part = startCoordinator(`coordinator-${n}`, temp.home, { WINDLASS_HOST: host, ...env, ...over(database) })
      parts.push(part)
      urls.push(`http://${host}:${((await part.ready) as { port: number }).port}`)
    }
    const apiKey = await ownersKey(database)
    const clients = urls.map((url) => createClient({ url, apiKey, org: 'default' }))
    const metric = (name: string) => readMetric(urls[0]!, name)
    const pid = (n: number) => parts[n]!.pid()!
    return { home: temp.home, database, urls, client: clients[0]!, clients, metric, pid, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const over = (database: Database) => ({ WINDLASS_DATABASE_URL: database.url })

function startCoordinator(name: string, home: string, env: Record<string, string>): Part {
  return startPart({
    name,
    module: '@windlass/coordinator/main.ts',
    nodeArgs: ['--disable-warning=ExperimentalWarning'],
    env: {
      ...inherited(),
      WINDLASS_HOME: home,
      WINDLASS_PORT: '0',
      WINDLASS_LIMIT_IDENTITY_PER_MIN: '0',
      WINDLASS_LIMIT_ORG_PER_MIN: '0',
      WINDLASS_LIMIT_REFUSED_PER_MIN: '0',
      WINDLASS_LIMIT_WAITING: '0',
      WINDLASS_LIMIT_ORG_WAITING: '0',
      WINDLASS_METRICS_TOKEN: METRICS_TOKEN,
      ...env,
    },
    logFile: join(home, `${name}.log`),
    tell: SILENT,
    stopMs: ENDED_MS,
  })
}

async function ownersKey({ db }: Database): Promise<string> {
  const [org] = await db<{ id: string }[]>`select id from orgs where slug = 'default'`
  if (!org) throw new Error('the coordinator has made no org')
  return (await mintApiKey(db, { orgId: org.id as never, name: 'fleet', role: 'owner' })).key
}

async function readMetric(url: string, name: string): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
  const lines = (await answer.text()).split('\n')
  const found = lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  if (found.length === 0) throw new Error(`no ${name} in /metrics: ${answer.status}`)
  return found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** Removes a folder that programs may still write into while they die. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
