import type { JobId, OrgId } from '@windlass/shared/ids.ts'
import type { BulkFilter, Job, JobKind, JobStatus } from '@windlass/shared/model/job.ts'
import type { Author } from '../audit/row.ts'

/** What it failed for has to be counted apart. */
export interface BareJobRow {
  id: JobId
  orgId: OrgId
  org: string
  kind: JobKind
  filter: BulkFilter
  dryRun: boolean
  reason: string
  author: Author
  status: JobStatus
  error: string | null
  listedTo: string | null
  isListed: boolean
  matched: number
  done: number
  failed: number
  createdAt: Date
  deadlineAt: Date
  finishedAt: Date | null
  isOverdue: boolean
}

export interface JobRow extends BareJobRow {
  failures: Record<string, number> | null
}

export function presentJob(row: JobRow): Job {
  const { id, org, kind, filter, dryRun, status, error, matched, done, failed, failures } = row
  return {
    id,
    org,
    kind,
    filter,
    dryRun,
    status,
    error,
    matched,
    done,
    failed,
    failures: failures ?? {},
    createdAt: row.createdAt.getTime(),
    deadlineAt: row.deadlineAt.getTime(),
    finishedAt: row.finishedAt?.getTime() ?? null,
  }
}
