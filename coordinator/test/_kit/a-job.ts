import { newId, type JobId, type OrgId } from '@windlass/shared/ids.ts'
import { insert, type NewJob } from '../../bulk/store.ts'
import type { Db } from '../../db/client.ts'
import { aSystemAuthor } from './credentials.ts'

/** A bulk job that nobody is told to work on. */
export async function aJob(db: Db, orgId: OrgId, kind: NewJob['kind']): Promise<JobId> {
  const id = newId('job')
  const author = aSystemAuthor(orgId)
  await db.begin((tx) => insert(tx, { id, orgId, kind, filter: {}, dryRun: false, reason: '', author, key: null }))
  return id
}
