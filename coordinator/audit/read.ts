import { Fault } from '@windlass/shared/errors.ts'
import type { AuditEntry } from '@windlass/shared/model/audit.ts'
import type { Db } from '../db/client.ts'
import { countFitting } from '../db/page-bytes.ts'
import type { Caller } from '../actor.ts'
import type { AuditRow } from './row.ts'
import * as store from './store.ts'

export const changesBy = store.changesBy

type AuditAsk = Omit<store.AuditFilter, 'orgId' | 'actions'> & { action?: readonly string[] | undefined }

/** So many of the page as fit into one answer, and the one behind them. */
export async function listAudit(
  { db }: { db: Db },
  caller: Caller,
  ask: AuditAsk,
): Promise<{ entries: AuditEntry[]; fitting: number }> {
  const { action, ...rest } = ask
  const filter = { ...rest, actions: action && actionsOf(action), orgId: caller.orgId }
  const fitting = countFitting(await store.sizes(db, filter))
  const rows = await store.list(db, { ...filter, limit: fitting + 1 })
  return { entries: rows.map((row) => present(caller.org, row)), fitting }
}

/** `keys.revoke`, or `keys.*` for the whole group. */
const ACTION = /^([a-z][A-Za-z]*)\.(\*|[a-z][A-Za-z]*)$/

function actionsOf(given: readonly string[]): store.ActionFilter {
  const parsed = given.map((text, i) => ACTION.exec(text) ?? refuse(`action[${i}]`, text))
  const isWhole = (match: RegExpExecArray) => match[2] === '*'
  return {
    exact: parsed.filter((match) => !isWhole(match)).map((match) => match[0]),
    wholeGroups: parsed.filter(isWhole).map((match) => match[1]!),
    groups: [...new Set(parsed.map((match) => match[1]!))],
  }
}

function refuse(path: string, text: string): never {
  throw new Fault(
    'VALIDATION_FAILED',
    { path },
    `${path}: \`${text}\` is no operation. Name one as \`keys.revoke\`, or all of a group as \`keys.*\`.`,
  )
}

function present(org: string, row: AuditRow): AuditEntry {
  const { id, at, via, requestId, action, before, after } = row
  return {
    id,
    org,
    createdAt: at.getTime(),
    actor: { kind: row.actorKind, id: row.actorId, name: row.actorName },
    via,
    requestId,
    action,
    target: { type: row.targetType, id: row.targetId, name: row.targetName },
    before,
    after,
  }
}
