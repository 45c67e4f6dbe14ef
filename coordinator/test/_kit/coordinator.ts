/** A whole coordinator in this process, on a port of its own, over a database that several of them may share. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId, type OrgId, type PoolId } from '@windlass/shared/ids.ts'
import type { Base } from '@windlass/shared/ops/base.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Log } from '@windlass/shared/log.ts'
import { EVENT_PAGE_LEAST, type RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { shareDownloads } from '@windlass/shared/test/_kit/shared-downloads.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { type Config, readConfig } from '../../config.ts'
import type { Database, Db } from '../../db/client.ts'
import { startCoordinator } from '../../start.ts'
import { mintApiKey } from './credentials.ts'
import { testDatabase } from './database.ts'
import { borrowCoordinator } from './shared-coordinator.ts'
import type { Settings, TestCoordinator } from './coordinator-types.ts'

export type { Settings, TestCoordinator } from './coordinator-types.ts'

/** The org that every installation begins with. */
const FIRST_ORG = 'default'

/**
 * Nothing is swept here, so that a slow machine takes no run from a test that does not ask for it; and a test may send
 * as many requests as it likes.
 */
const CALM: Settings = {
  SWEEP_MS: 3_600_000,
  SWEEP_RUNS_MS: 3_600_000,
  LOG_LEVEL: 'error',
  STRICT: 'true',
  DATABASE_CONNECTIONS: 6,
  LIMIT_IDENTITY_PER_MIN: 0,
  LIMIT_ORG_PER_MIN: 0,
  LIMIT_REFUSED_PER_MIN: 0,
  LIMIT_WAITING: 0,
  LIMIT_ORG_WAITING: 0,
}

export interface CoordinatorAsk {
  log?: Log
  /** What settings do not allow. */
  config?: Partial<Config>
  /** Done to the database before the coordinator opens its connections. */
  prepare?(db: Db): Promise<void>
}

/**
 * The coordinator that a process shares, as the owner of a new org sees it. A file that changes or counts what belongs
 * to all orgs asks for `aCoordinatorOfItsOwn`.
 */
export async function aCoordinator(): Promise<TestCoordinator> {
  const { coordinator, giveBack } = await borrowCoordinator(() => aCoordinatorOfItsOwn())
  const org = await anOrg(coordinator, 'ours', 'test')
  const others: TestCoordinator[] = []
  const { onStop, actAll } = lastActs()
  const leave = async () => {
    actAll()
    await Promise.all(others.map((one) => one.stop()))
    await giveBack()
  }
  let leaving: Promise<void> | undefined
  return {
    ...asOwner(coordinator, org),
    onStop,
    async another(settings, config) {
      const one = await coordinator.another(settings, config)
      others.push(one)
      return asOwner(one, org)
    },
    stop: () => (leaving ??= leave()),
  }
}

/** A coordinator with a database that nobody else uses. Its org is the one that every installation begins with. */
export async function aCoordinatorOfItsOwn(
  settings: Settings = {},
  ask: CoordinatorAsk = {},
): Promise<TestCoordinator> {
  const database = await testDatabase()
  await ask.prepare?.(database.db)
  const home = await mkdtemp(join(tmpdir(), 'windlass-coordinator-'))
  shareDownloads(home)
  const first = await startOver(database, home, settings, ask)
  const others: TestCoordinator[] = []
  return {
    ...first,
    async another(more = {}, config = {}) {
      const of = { ...ask, config: { ...ask.config, ...config } }
      const one = await startOver(database, home, { ...settings, ...more }, of)
      others.push(one)
      return one
    },
    async stop() {
      await Promise.all([first, ...others].map((one) => one.stop()))
      await database.close()
      // A process that packs the agent is killed by then, and not yet gone.
      await rm(home, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function startOver(
  database: Database,
  home: string,
  settings: Settings,
  { config, log }: CoordinatorAsk,
): Promise<TestCoordinator> {
  const all = { ...CALM, ...settings, DATABASE_URL: database.url, HOME: home, PORT: 0 }
  const env = Object.fromEntries(Object.entries(all).map(([name, value]) => [`WINDLASS_${name}`, String(value)]))
  const coordinator = await startCoordinator({ ...readConfig(env), ...config }, log)
  const { db } = database
  const [found] = await db<[{ orgId: OrgId; poolId: PoolId }]>`
    select o.id as org_id, p.id as pool_id
    from orgs o
    join runner_pools p on p.org_id = o.id and p.name = 'default'
    where o.slug = ${FIRST_ORG}`
  const { key } = await mintApiKey(db, { orgId: found.orgId, name: 'test', role: 'owner' })
  const url = `http://127.0.0.1:${coordinator.port}`
  const { onStop, actAll } = lastActs()
  const stop = async () => {
    actAll()
    await coordinator.stop()
  }
  let stopping: Promise<void> | undefined
  return {
    ...found,
    url,
    db,
    deps: coordinator.deps,
    org: FIRST_ORG,
    apiKey: key,
    call: callAs(url, key),
    another: () => Promise.reject(new Error('ask the first coordinator for another')),
    onStop,
    stop: () => (stopping ??= stop()),
  }
}

function lastActs() {
  const acts: (() => void)[] = []
  const actAll = () => {
    for (const act of acts.splice(0)) act()
  }
  return { onStop: (act: () => void) => void acts.push(act), actAll }
}

const callAs =
  (url: string, owner: string): TestCoordinator['call'] =>
  (row, args, { apiKey = owner, ...options } = {}) =>
    callOp({ url, apiKey }, row, args, options)

export interface TestOrg {
  id: OrgId
  slug: string
  /** Of its pool `default`. */
  poolId: PoolId
  /** An owner's. */
  apiKey: string
}

let orgs = 0

/** A new org. Unless it is named it belongs to strangers: their keys must see nothing of ours. */
export async function anOrg(
  { db }: Pick<TestCoordinator, 'db'>,
  name = 'strangers',
  keyName = 'stranger',
): Promise<TestOrg> {
  const [id, poolId] = [newId('org'), newId('pool')]
  const slug = `${name}-${++orgs}`
  await db`insert into orgs (id, slug, name) values (${id}, ${slug}, ${name})`
  await db`insert into runner_pools (id, org_id, name) values (${poolId}, ${id}, 'default')`
  const { key } = await mintApiKey(db, { orgId: id, name: keyName, role: 'owner' })
  return { id, slug, poolId, apiKey: key }
}

/** The coordinator as the owner of this org sees it. */
export function asOwner(c: TestCoordinator, { id, slug, poolId, apiKey }: TestOrg): TestCoordinator {
  return { ...c, org: slug, orgId: id, poolId, apiKey, call: callAs(c.url, apiKey) }
}

export interface RunAsk {
  workflow: string
  input?: unknown
  environment?: string | null
  tags?: string[]
  priority?: number
  version?: number
}

/** A queued run. */
export async function aRun(c: Pick<TestCoordinator, 'call' | 'org'>, ask: RunAsk): Promise<Run> {
  return (await c.call(ops.runs.trigger, { org: c.org, ...ask })).run
}

export async function runOf(c: Pick<TestCoordinator, 'call'>, id: string): Promise<Run> {
  return (await c.call(ops.runs.get, { run: id })).run
}

/** The whole log. Fails when cursors do not count 1, 2, 3 …. */
export async function logOf(c: Pick<TestCoordinator, 'call'>, id: string): Promise<RunEvent[]> {
  const channels = ['lifecycle', 'phase', 'output', 'log', 'agent'] as const
  const all: RunEvent[] = []
  for (;;) {
    const since = all.at(-1)?.cursor ?? 0
    const { events, done } = await c.call(ops.runs.events, { run: id, since, channels: [...channels], limit: 1000 })
    for (const event of events) {
      all.push(event)
      if (event.cursor !== all.length) throw new Error(`cursor ${event.cursor} stands where ${all.length} belongs`)
    }
    if (done || events.length < EVENT_PAGE_LEAST) return all
  }
}

export async function typesOf(c: Pick<TestCoordinator, 'call'>, id: string): Promise<string[]> {
  return (await logOf(c, id)).map((event) => event.type)
}

/** A request as a stranger would write it, where the typed client would not let us. */
export function rawCall(base: Base, method: string, path: string, body?: string): Promise<Response> {
  const headers: Record<string, string> = { authorization: `Bearer ${base.apiKey ?? ''}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  return fetch(`${base.url}${path}`, { method, headers, body: body ?? null, signal: AbortSignal.timeout(DEADLINE_MS) })
}

/** What `assert.rejects` takes: the refusal's code and, where it matters, the path of the field. */
export function refusal(code: string, path?: string) {
  return (error: Error & { code?: string; detail?: { path?: string } }): boolean => {
    if (error.code !== code) throw new Error(`${error.code ?? error.name}: ${error.message}, in place of ${code}`)
    if (path !== undefined && error.detail?.path !== path)
      throw new Error(`the path is ${error.detail?.path}, not ${path}`)
    return true
  }
}
