/** A whole coordinator in this process, on a port of its own, over a database that several of them may share. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId, type OrgId, type PoolId } from '@windlass/shared/ids.ts'
import { type Base, callOp, type CallOptions } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Op } from '@windlass/shared/ops/op.ts'
import { EVENT_PAGE_LEAST, type RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { z } from 'zod'
import { readConfig } from '../../config.ts'
import type { Database, Db } from '../../db/client.ts'
import type { Deps } from '../../deps.ts'
import { startCoordinator } from '../../start.ts'
import { mintApiKey } from './credentials.ts'
import { testDatabase } from './database.ts'

/** The org that every installation begins with. */
export const ORG = 'default'

export interface TestCoordinator {
  url: string
  db: Db
  deps: Deps
  orgId: OrgId
  /** Of the pool `default`. */
  poolId: PoolId
  /** An owner's. */
  apiKey: string
  /** Calls an operation, as the owner unless another key is given. */
  call<I extends z.ZodObject, O extends z.ZodType>(
    row: Op<I, O>,
    args: z.input<I>,
    options?: CallOptions & { apiKey?: string },
  ): Promise<z.output<O>>
  /** A coordinator more over the same database and the same objects. */
  another(settings?: Settings): Promise<TestCoordinator>
  stop(): Promise<void>
}

/** `WINDLASS_…` by what follows: `{ LEASE_MS: 400 }`. */
export type Settings = Record<string, string | number>

/**
 * Sweeps are seldom here, so that a slow machine takes no run from a test that does not ask for it; and a test may send
 * as many requests as it likes.
 */
const CALM: Settings = {
  SWEEP_MS: 60_000,
  LOG_LEVEL: 'error',
  STRICT: 'true',
  DATABASE_CONNECTIONS: 6,
  LIMIT_IDENTITY_PER_MIN: 0,
  LIMIT_ORG_PER_MIN: 0,
}

/** What lets leases run out within a test. Sweeps look often, and there is no amnesty. */
export const HASTY: Settings = {
  HEARTBEAT_MS: 50,
  FENCE_MS: 150,
  LEASE_MS: 400,
  OFFER_MS: 200,
  SWEEP_MS: 50,
  AMNESTY_MS: 0,
}

export async function aCoordinator(settings: Settings = {}): Promise<TestCoordinator> {
  const database = await testDatabase()
  const home = await mkdtemp(join(tmpdir(), 'windlass-coordinator-'))
  const first = await startOver(database, home, settings)
  const others: TestCoordinator[] = []
  return {
    ...first,
    async another(more = {}) {
      const one = await startOver(database, home, { ...settings, ...more })
      others.push(one)
      return one
    },
    async stop() {
      await Promise.all([first, ...others].map((one) => one.stop()))
      await database.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}

async function startOver(database: Database, home: string, settings: Settings): Promise<TestCoordinator> {
  const all = { ...CALM, ...settings, DATABASE_URL: database.url, HOME: home, PORT: 0 }
  const env = Object.fromEntries(Object.entries(all).map(([name, value]) => [`WINDLASS_${name}`, String(value)]))
  const coordinator = await startCoordinator(readConfig(env))
  const { db } = database
  const [found] = await db<[{ orgId: OrgId; poolId: PoolId }]>`
    select o.id as org_id, p.id as pool_id
    from orgs o
    join runner_pools p on p.org_id = o.id and p.name = 'default'
    where o.slug = ${ORG}`
  const { key } = await mintApiKey(db, { orgId: found.orgId, name: 'test', role: 'owner' })
  const url = `http://127.0.0.1:${coordinator.port}`
  let stopping: Promise<void> | undefined
  return {
    ...found,
    url,
    db,
    deps: coordinator.deps,
    apiKey: key,
    call: (row, args, { apiKey = key, ...options } = {}) => callOp({ url, apiKey }, row, args, options),
    another: () => Promise.reject(new Error('ask the first coordinator for another')),
    stop: () => (stopping ??= coordinator.stop()),
  }
}

export interface TestOrg {
  id: OrgId
  slug: string
  /** An owner's. */
  apiKey: string
}

let orgs = 0

/** An org beside `default`: its keys must see nothing of ours. */
export async function anOrg({ db }: Pick<TestCoordinator, 'db'>): Promise<TestOrg> {
  const id = newId('org')
  const slug = `strangers-${++orgs}`
  await db`insert into orgs (id, slug, name) values (${id}, ${slug}, 'Strangers')`
  await db`insert into runner_pools (id, org_id, name) values (${newId('pool')}, ${id}, 'default')`
  const { key } = await mintApiKey(db, { orgId: id, name: 'stranger', role: 'owner' })
  return { id, slug, apiKey: key }
}

export interface RunAsk {
  workflow: string
  input?: unknown
  environment?: string
  tags?: string[]
  priority?: number
  version?: number
}

/** A queued run. */
export async function aRun(c: Pick<TestCoordinator, 'call'>, ask: RunAsk): Promise<Run> {
  return (await c.call(ops.runs.trigger, { org: ORG, ...ask })).run
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
  return fetch(`${base.url}${path}`, { method, headers, body: body ?? null, signal: AbortSignal.timeout(20_000) })
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
