import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Environment } from '@windlass/shared/model/environment.ts'
import type { Db } from '../db/client.ts'
import type { EnvironmentNames } from './names.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import { noEnvironment } from './level.ts'
import type { EnvironmentRow } from './row.ts'
import { refresh } from './sets.ts'
import { retireSets } from './store-sets.ts'
import * as store from './store.ts'

/** A change of what the org sets makes the sets of all of them anew. */
const MOST_ENVIRONMENTS = 200

type EnvironmentDeps = { db: Db; environments: EnvironmentNames }

export async function listEnvironments(
  deps: { db: Db },
  { orgId, org }: { orgId: OrgId; org: string },
  page: store.NamePage,
): Promise<Environment[]> {
  return (await store.listEnvironments(deps.db, orgId, page)).map((row) => present(org, row))
}

export async function createEnvironment(deps: EnvironmentDeps, by: Acting, name: string): Promise<Environment> {
  const { orgId } = by
  const row = await deps.db.begin(async (tx) => {
    await store.lockOrg(tx, orgId)
    const inserted = await store.insertEnvironment(tx, { id: newId('env'), orgId, name })
    if (!inserted)
      throw new Fault('CONFLICT', { environment: name }, `The environment \`${name}\` exists already; use it as it is.`)
    if ((await store.countEnvironments(tx, orgId)) > MOST_ENVIRONMENTS) throw tooMany()
    await refresh(tx, { orgId, environment: name })
    const target = { type: 'environment', id: inserted.id, name }
    await record(tx, by, { action: 'environments.create', target, after: { name } })
    return inserted
  })
  deps.environments.forget(orgId, name)
  return present(by.org, row)
}

function tooMany(): Fault {
  return new Fault(
    'VALIDATION_FAILED',
    { path: 'name', limit: MOST_ENVIRONMENTS },
    `name: the org has ${MOST_ENVIRONMENTS} environments, and may have no more. Delete one that is not used.`,
  )
}

/** Enough to say that there are many. */
const COUNTED = 1000

/**
 * Deletes an environment with all that is set in it. No API key deletes a secret, so none deletes an environment that
 * holds one. A run that is queued at this very moment is not seen here: it ends with ENVIRONMENT_GONE when it is claimed,
 * as it must not start with other variables than it was asked to.
 */
export async function deleteEnvironment(deps: EnvironmentDeps, by: Acting, ref: string): Promise<void> {
  const { orgId } = by
  const { id, name } = await deps.db.begin(async (tx) => {
    await store.lockOrg(tx, orgId)
    const found = await store.findEnvironment(tx, orgId, ref)
    if (!found) throw noEnvironment(ref)
    const level = { orgId, environment: found.name }
    const [secret] = await store.listEntries(tx, level, { kind: 'secret', limit: 1 })
    if (secret && by.kind !== 'session') throw holdsSecrets(found.name)
    const unfinishedRuns = await store.countUnfinished(tx, level, COUNTED)
    if (unfinishedRuns > 0) throw inUse(found.name, unfinishedRuns)
    const { variables, secrets } = await store.deleteEnvironment(tx, level)
    await retireSets(tx, orgId)
    const target = { type: 'environment', id: found.id, name: found.name }
    await record(tx, by, { action: 'environments.delete', target, before: { name: found.name, variables, secrets } })
    return found
  })
  for (const one of [id, name]) deps.environments.forget(orgId, one)
}

function holdsSecrets(environment: string): Fault {
  const way = '`windlass admin sessions create` on the host of the coordinator makes one'
  const message = `The environment \`${environment}\` holds secrets, which no API key deletes; use a session: ${way}.`
  return new Fault('FORBIDDEN', { environment, needs: { session: true } }, message)
}

function inUse(environment: string, unfinishedRuns: number): Fault {
  const runs = unfinishedRuns === 1 ? '1 unfinished run uses' : `${unfinishedRuns} unfinished runs use`
  return new Fault(
    'ENVIRONMENT_IN_USE',
    { environment, unfinishedRuns },
    `${unfinishedRuns >= COUNTED ? `At least ${runs}` : runs} the environment \`${environment}\`: let them end or cancel them (\`windlass runs list --environment ${environment}\`).`,
  )
}

function present(org: string, row: EnvironmentRow): Environment {
  return { id: row.id, org, name: row.name, createdAt: row.createdAt.getTime() }
}
