import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { SecretName } from '@windlass/shared/model/environment.ts'
import type { Db } from '../db/client.ts'
import type { SecretKeys } from './secret-keys.ts'
import type { Acting, ProgramIdentity } from '../actor.ts'
import { record } from '../audit/record.ts'
import { assertFits, findLevel, lockLevel, noEnvironment } from './level.ts'
import type { EntryRow, Level } from './row.ts'
import * as sealed from './store-sealed.ts'
import { refresh, type VariableSets } from './sets.ts'
import * as store from './store.ts'
import { type EntryRef, isOther, notThere, targetOf } from './variables.ts'

export async function listSecrets(
  deps: { db: Db },
  { orgId, environment }: { orgId: OrgId; environment: string | undefined },
  page: store.NamePage,
): Promise<SecretName[]> {
  const level = await findLevel(deps.db, orgId, environment)
  return level ? (await store.listEntries(deps.db, level, { ...page, kind: 'secret' })).map(present) : []
}

export async function setSecret(
  deps: { db: Db; secretKeys: SecretKeys },
  by: Acting,
  { name, environment, value }: EntryRef & { value: string },
): Promise<SecretName> {
  return deps.db.begin(async (tx) => {
    const level = await lockLevel(tx, by.orgId, environment)
    const before = await store.findEntry(tx, level, name)
    if (before && before.value !== null) throw isOther(level, name, 'variable')
    // From here to the commit the first key stays the first, so none goes by which this is sealed.
    await sealed.lockKeys(tx, 'to seal')
    const ring = await deps.secretKeys.ring()
    const content = { sealed: ring.seal({ ...level, name }, value) }
    const row = await store.putEntry(tx, level, { name, updatedBy: by.id, content })
    await assertFits(tx, level)
    await refresh(tx, level)
    const target = targetOf('secret', level, name)
    await record(tx, by, {
      action: 'secrets.set',
      target,
      before: before ? facts(level, name) : null,
      after: facts(level, name),
    })
    return present(row)
  })
}

export async function deleteSecret(deps: { db: Db }, by: Acting, { name, environment }: EntryRef): Promise<void> {
  await deps.db.begin(async (tx) => {
    const level = await lockLevel(tx, by.orgId, environment)
    const before = await store.findEntry(tx, level, name)
    if (!before || before.value !== null) throw notThere(level, name, 'secret')
    await store.removeEntry(tx, level, name)
    await refresh(tx, level)
    const target = targetOf('secret', level, name)
    await record(tx, by, { action: 'secrets.delete', target, before: facts(level, name) })
  })
}

/** Never with the value. */
function facts({ environment }: Level, name: string) {
  return { name, environment: environment || null }
}

function present({ name, environment, updatedAt, updatedBy }: EntryRow): SecretName {
  return { name, environment: environment || null, updatedAt: updatedAt.getTime(), updatedBy }
}

/**
 * What a process of a run is to find beside its variables, as it is now. The token is dead as soon as the run ends or is on another
 * process.
 */
export async function secretsOfRun(
  deps: { db: Db; secretKeys: SecretKeys; variableSets: VariableSets },
  program: ProgramIdentity,
  runId: RunId,
): Promise<Record<string, string>> {
  const run = runId === program.runId ? await sealed.findPlaced(deps.db, program) : undefined
  if (!run) throw new Fault('NOT_FOUND', { run: runId })
  if (!run.lives) throw new Fault('STALE_PLACEMENT', { run: runId, epoch: program.epoch })
  // Those of the org alone would be others than the run was asked to have.
  if (!run.hasEnvironment) throw noEnvironment(run.environment!)
  const level = { orgId: program.orgId, environment: run.environment ?? '' }
  const rows = await sealed.effectiveSecrets(deps.db, level)
  if (rows.length === 0) return {}
  const pinned = await deps.variableSets.get(run.variableSetId ?? '0')
  const ring = await deps.secretKeys.ring()
  // A variable set since the run has started does not reach it, so it does not take the place of the secret either.
  const given = rows.filter((row) => !(row.isHidden && Object.hasOwn(pinned, row.name)))
  return Object.fromEntries(given.map((row) => [row.name, ring.open(row, row.sealed)]))
}
