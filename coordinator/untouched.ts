/**
 * Detail of a fault (5xx) of which it is sure that nothing was changed: clients take any other for one that may have
 * come when the change was done.
 */
export const UNTOUCHED = { mayBeDone: false } as const

/** What they write is one transaction, behind which they ask the database for nothing that could be refused. */
const IN_ONE: ReadonlySet<string> = new Set([
  'connections.delete',
  'environments.create',
  'environments.delete',
  'keys.create',
  'pools.createToken',
  'pools.revokeToken',
  'schedules.delete',
  'secrets.delete',
  'secrets.set',
  'variables.delete',
  'variables.set',
  'workflows.disable',
  'workflows.enable',
  'workflows.promote',
])

/** Whether an operation has changed nothing where the database has refused one of its statements. */
export const isUntouched = (op: string | undefined): boolean => op !== undefined && IN_ONE.has(op)
