import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Variable } from '@windlass/shared/model/environment.ts'
import type { Db } from '../db/client.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import { assertFits, findLevel, levelText, lockLevel } from './level.ts'
import type { EntryRow, Level } from './row.ts'
import { refresh } from './sets.ts'
import * as store from './store.ts'

/** What a caller names: a name of one environment, or of the org. */
export interface EntryRef {
  name: string
  environment?: string | undefined
}

export async function listVariables(
  deps: { db: Db },
  { orgId, environment }: { orgId: OrgId; environment: string | undefined },
  page: store.NamePage,
): Promise<Variable[]> {
  const level = await findLevel(deps.db, orgId, environment)
  return level ? (await store.listEntries(deps.db, level, { ...page, kind: 'variable' })).map(present) : []
}

export async function setVariable(
  deps: { db: Db },
  by: Acting,
  { name, environment, value }: EntryRef & { value: string },
): Promise<Variable> {
  return deps.db.begin(async (tx) => {
    const level = await lockLevel(tx, by.orgId, environment)
    const before = await store.findEntry(tx, level, name)
    if (before?.value === null) throw isOther(level, name, 'secret')
    const row = await store.putEntry(tx, level, { name, updatedBy: by.id, content: { value } })
    await assertFits(tx, level)
    await refresh(tx, level)
    await record(tx, by, {
      action: 'variables.set',
      target: targetOf('variable', level, name),
      before: before ? facts(before) : null,
      after: { ...facts(row), isChanged: before?.value !== value },
    })
    return present(row)
  })
}

export async function deleteVariable(deps: { db: Db }, by: Acting, { name, environment }: EntryRef): Promise<void> {
  await deps.db.begin(async (tx) => {
    const level = await lockLevel(tx, by.orgId, environment)
    const before = await store.findEntry(tx, level, name)
    if (!before || before.value === null) throw notThere(level, name, 'variable')
    await store.removeEntry(tx, level, name)
    await refresh(tx, level)
    const target = targetOf('variable', level, name)
    await record(tx, by, { action: 'variables.delete', target, before: facts(before) })
  })
}

export type Kind = 'variable' | 'secret'

/** On one level a name is a variable or a secret: runs could be given only one of the two. */
export function isOther(level: Level, name: string, kind: Kind): Fault {
  const { environment } = level
  const where = environment === '' ? '' : ` --environment ${environment}`
  const command = `windlass ${kind === 'secret' ? 'secrets' : 'vars'} delete ${name}${where}`
  return new Fault(
    'CONFLICT',
    { path: 'name', name, environment: environment || null, kind },
    `\`${name}\` is a ${kind} of ${levelText(level)}. Delete that first (\`${command}\`), or take another name.`,
  )
}

export function notThere(level: Level, name: string, kind: Kind): Fault {
  const { environment } = level
  const list = kind === 'secret' ? 'secrets' : 'vars'
  return new Fault(
    'NOT_FOUND',
    { [kind]: name, environment: environment || null },
    `${levelText(level)} has no ${kind} \`${name}\` of its own; \`windlass ${list} list\` shows what there is.`,
  )
}

export function targetOf(type: Kind, { environment }: Level, name: string) {
  return { type, id: environment === '' ? name : `${environment}/${name}`, name }
}

/** Facts for the audit log, without the value: a secret set by mistake would stay there for ever. */
function facts({ name, environment, value }: EntryRow) {
  return { name, environment: environment || null, characters: value!.length }
}

function present({ name, environment, value, updatedAt, updatedBy }: EntryRow): Variable {
  return { name, value: value!, environment: environment || null, updatedAt: updatedAt.getTime(), updatedBy }
}
