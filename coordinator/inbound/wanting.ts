import type { Db } from '../db/client.ts'
import type { WantingRow } from './row.ts'
import type { InboundSource } from './sources.ts'
import * as store from './store.ts'

/** Which workflows a source can start, before what they want of it is read. */
export interface Wanting {
  /** In the order of their ids, which is that of their creation. */
  workflows: readonly Pick<WantingRow, 'workflowId' | 'slug'>[]
  /** Of event patterns and filters, as JSON. */
  bytes: number
  /** Why none of it is read; undefined: it can be. */
  tooMuch: string | undefined
}

/** Filters of all workflows are read for each delivery: 15 MB of them took a second, in which others waited. */
const MOST_BYTES = 1024 * 1024
/** A delivery says of each workflow what became of it. */
const MOST_WORKFLOWS = 1000

type Source = Pick<InboundSource, 'orgId' | 'name' | 'hook'>

/** Of workflows without the first that is one too many. */
export async function wantingOf({ db }: { db: Db }, { orgId, name, hook }: Source): Promise<Wanting> {
  if (hook) return { workflows: [{ workflowId: hook.workflowId, slug: name }], bytes: 0, tooMuch: undefined }
  const found = await store.wantingOf(db, orgId, name, MOST_WORKFLOWS + 1)
  const bytes = found.reduce((sum, each) => sum + each.bytes, 0)
  const tooMuch = found.length > MOST_WORKFLOWS ? MANY_WORKFLOWS : bytes > MOST_BYTES ? manyBytes(bytes) : undefined
  return { workflows: found.slice(0, MOST_WORKFLOWS), bytes, tooMuch }
}

const MANY_WORKFLOWS = `More than ${MOST_WORKFLOWS} workflows name this connection. Use several connections.`

function manyBytes(bytes: number): string {
  const found = `What workflows want of this connection has ${bytes} bytes in their descriptors`
  return `${found}; ${MOST_BYTES} are read for a delivery. Shorten \`filter\`, or use several connections.`
}
