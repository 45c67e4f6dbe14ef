import assert from 'node:assert/strict'
import type { AuditEntry } from '@windlass/shared/model/audit.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { type TestCoordinator } from './coordinator.ts'

/** What is in the log, newest first; a hundred entries at most. */
export async function entriesOf(
  c: Pick<TestCoordinator, 'call' | 'org'>,
  filter: Omit<ArgsOf<typeof ops.audit.list>, 'org'> = {},
): Promise<AuditEntry[]> {
  return (await c.call(ops.audit.list, { org: c.org, limit: 100, ...filter })).auditEntries
}

/** The entries that the work adds, newest first. Nobody else may change anything meanwhile. */
export async function entriesBy(
  c: Pick<TestCoordinator, 'call' | 'org'>,
  work: () => Promise<unknown>,
): Promise<AuditEntry[]> {
  const [last] = await entriesOf(c, { limit: 1 })
  await work()
  const all = await entriesOf(c)
  const known = last ? all.findIndex((entry) => entry.id === last.id) : all.length
  assert.notEqual(known, -1, 'more was logged than one page shows')
  return all.slice(0, known)
}
