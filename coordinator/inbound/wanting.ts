import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import { groupCommit, type GroupCommit } from '../db/group-commit.ts'
import { createSlowCommits } from '../db/slow-commits.ts'
import type { NamingRow, WantedRow, WeighedRow } from './row.ts'
import type { InboundSource } from './sources.ts'
import * as store from './store.ts'

/** How much a source can start. */
export interface Wanting {
  /** Number of workflows; one more than may be where there are more. */
  workflows: number
  /** In bytes, what they take that no delivery has with it. */
  weight: number
  /** Why none of it is read; undefined: it can be. */
  tooMuch?: string
  /** What they want, where that is light. */
  wanted?: readonly WantedRow[]
}

/** A connection by its name. */
export interface Named {
  orgId: OrgId
  name: string
}

export type WantingDeps = { db: Db; wantings: GroupCommit<Named, Wanting> }

/**
 * What a delivery and all that is wanted of it may have together, to be taken at once. What has more takes a turn of
 * its org.
 */
export const LIGHT_BYTES = 64 * 1024
/**
 * Each workflow is read, decided upon and written: 500 deliveries of two bytes at once, at a connection that a thousand
 * workflows name, kept everybody else waiting for 15 s.
 */
const WORKFLOW_BYTES = 1024
/** Filters of all workflows are read for each delivery: 15 MB of them took a second, in which others waited. */
const MOST_BYTES = 1024 * 1024
/** A delivery says of each workflow what became of it. */
const MOST_WORKFLOWS = 1000

/** Deliveries of one statement. They go on in one turn of the event loop, with 63 workflows each. */
const MOST_DELIVERIES = 8

type Source = Pick<InboundSource, 'orgId' | 'name' | 'hook'>

export async function wantingOf({ wantings }: Pick<WantingDeps, 'wantings'>, source: Source): Promise<Wanting> {
  return source.hook ? { workflows: 1, weight: 0 } : wantings.add(source)
}

/** Their workflows, in the order of their ids, which is that of their creation; without the first one too many. */
export async function workflowsOf({ db }: { db: Db }, source: Source, { wanted }: Wanting): Promise<NamingRow[]> {
  if (source.hook) return [{ workflowId: source.hook.workflowId, slug: source.name }]
  if (!wanted) return store.workflowsNaming(db, source, MOST_WORKFLOWS)
  return [...new Map(wanted.map((entry) => [entry.workflowId, entry])).values()]
}

/** With what they want, unless that is too much. */
export async function wantedOf({ db }: { db: Db }, source: Named, { wanted }: Wanting): Promise<readonly WantedRow[]> {
  return wanted ?? store.wantedOf(db, [source])
}

/** Deliveries that come in while others are looked at share the next statements, and those of a connection its rows. */
export function openWantings({ db, log }: { db: Db; log: Log }): GroupCommit<Named, Wanting> {
  return groupCommit<Named, Wanting>({
    name: 'read wantings',
    log,
    orgOf: ({ orgId }) => orgId,
    // Whoever only reads is told at once that the database is away.
    patienceMs: 0,
    max: MOST_DELIVERIES,
    lanes: 2,
    // Long filters of a thousand workflows are weighed for a second.
    slow: createSlowCommits(),
    commit: (asked) => readWantings(db, asked),
  })
}

async function readWantings(db: Db, asked: readonly Named[]): Promise<Wanting[]> {
  const connections = [...new Map(asked.map(({ orgId, name }) => [keyOf({ orgId, name }), { orgId, name }])).values()]
  const weighed = await store.weighWanted(db, connections, MOST_WORKFLOWS + 1)
  const found = new Map(weighed.map((row) => [keyOf(row), weigh(row)]))
  const isLight = (one: Named) => found.get(keyOf(one))!.weight <= LIGHT_BYTES
  const light = connections.filter(isLight)
  const rows = Map.groupBy(light.length > 0 ? await store.wantedOf(db, light) : [], keyOf)
  return asked.map((one) => ({
    ...found.get(keyOf(one))!,
    ...(isLight(one) && { wanted: rows.get(keyOf(one)) ?? [] }),
  }))
}

const keyOf = ({ orgId, name }: Named) => `${orgId} ${name}`

function weigh({ workflows, bytes }: WeighedRow): Wanting {
  const tooMuch = workflows > MOST_WORKFLOWS ? MANY_WORKFLOWS : bytes > MOST_BYTES ? manyBytes(bytes) : undefined
  return { workflows, weight: bytes + workflows * WORKFLOW_BYTES, ...(tooMuch !== undefined && { tooMuch }) }
}

const MANY_WORKFLOWS = `More than ${MOST_WORKFLOWS} workflows name this connection. Use several connections.`

function manyBytes(bytes: number): string {
  const found = `What workflows want of this connection has ${bytes} bytes in their descriptors`
  return `${found}; ${MOST_BYTES} are read for a delivery. Shorten \`filter\`, or use several connections.`
}
