import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId, Slug } from '@windlass/shared/ids.ts'
import type { Org } from '@windlass/shared/model/org.ts'
import { record } from '../audit/record.ts'
import type { Db, Sql } from '../db/client.ts'
import { ensurePool } from '../runners/pools.ts'
import { nameOf } from './name.ts'
import type { Operator } from './operator.ts'
import * as store from './store-orgs.ts'

/** Every org has one, so that a workflow whose descriptor names no pool has a place to run. */
const FIRST_POOL = 'default'

/** Makes an org with its first pool. */
export async function createOrg(db: Db, operator: Operator, ask: { slug: string; name: string }): Promise<Org> {
  const slug = slugOf(ask.slug)
  const name = nameOf(ask.name)
  return db.begin(async (tx) => {
    const row = await store.insert(tx, { id: newId('org'), slug, name })
    if (!row) throw new Fault('CONFLICT', { path: 'slug' }, `There is an org \`${slug}\` already; take another slug.`)
    await ensurePool(tx, row.id, FIRST_POOL)
    const target = { type: 'org', id: row.id, name: slug }
    await record(tx, { ...operator, orgId: row.id }, { action: 'orgs.create', target, after: { slug, name } })
    return present(row)
  })
}

/** The org of this slug is there when this returns, made now or before, and so is its first pool. */
export async function ensureOrg(sql: Sql, slug: string, name: string): Promise<OrgId> {
  const made = await store.insert(sql, { id: newId('org'), slug, name })
  const { id } = made ?? (await needOrg(sql, slug))
  await ensurePool(sql, id, FIRST_POOL)
  return id
}

export async function needOrg(sql: Sql, slug: string): Promise<Org> {
  const row = await store.findBySlug(sql, slug)
  if (!row) throw new Fault('NOT_FOUND', { org: slug }, `There is no org \`${slug}\`.`)
  return present(row)
}

export async function getOrg(sql: Sql, id: OrgId): Promise<Org> {
  const row = await store.find(sql, id)
  if (!row) throw new Fault('NOT_FOUND')
  return present(row)
}

export async function listOrgs(sql: Sql): Promise<Org[]> {
  return (await store.list(sql)).map(present)
}

function present({ id, slug, name, createdAt }: store.OrgRow): Org {
  return { id, slug, name, createdAt: createdAt.getTime() }
}

function slugOf(text: string): string {
  const parsed = Slug.safeParse(text)
  if (parsed.success) return parsed.data
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'slug' },
    `The slug ${parsed.error.issues[0]?.message}; \`${text}\` is none.`,
  )
}
