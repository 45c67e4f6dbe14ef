import { Fault } from '@windlass/shared/errors.ts'
import type { AuditEntry } from '@windlass/shared/model/audit.ts'
import type { Db } from '../db/client.ts'
import type { Caller } from '../actor.ts'
import type { AuditRow } from './row.ts'
import * as store from './store.ts'

export const changesBy = store.changesBy

type AuditAsk = Omit<store.AuditFilter, 'orgId' | 'actions'> & { action?: readonly string[] | undefined }

export async function listAudit(deps: { db: Db }, caller: Caller, ask: AuditAsk): Promise<AuditEntry[]> {
  const { action, ...rest } = ask
  const actions = action && actionsOf(action)
  const rows = await store.list(deps.db, { ...rest, actions, orgId: caller.orgId })
  return rows.map((row) => present(caller.org, row))
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
