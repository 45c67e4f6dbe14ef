import { Fault } from '@windlass/shared/errors.ts'
import { ConnectionId, newId, type OrgId } from '@windlass/shared/ids.ts'
import type { BearerScheme, Connection, ConnectionKind, HmacScheme, Source } from '@windlass/shared/model/connection.ts'
import type { Acting, Caller } from '../actor.ts'
import { record } from '../audit/record.ts'
import { type Db, PostgresError } from '../db/client.ts'
import { environmentId } from '../environments/level.ts'
import type { EnvironmentNames } from '../environments/names.ts'
import {
  newOwnedSecret,
  type OwnedState,
  ownedStates,
  removeOwned,
  replaceOwned,
} from '../environments/owned-secrets.ts'
import type { SecretKeys } from '../environments/secret-keys.ts'
import { type Address, addressOf } from './address.ts'
import type { ConnectionRow, SchemeChoice } from './row.ts'
import { standardKey } from './rules/signature.ts'
import { lastVerified } from './store-deliveries.ts'
import * as store from './store-connections.ts'

type Deps = { db: Db }
type SecretDeps = Deps & { secretKeys: SecretKeys }

export interface ConnectionAsk {
  name: string
  kind: ConnectionKind
  secret?: string | undefined
  environment?: string | undefined
  hmac?: HmacScheme | undefined
  bearer?: BearerScheme | undefined
  event?: Source | undefined
  dedupe?: Source | undefined
}

/** The secret is answered by the call that sets it, and never again. */
export async function createConnection(
  deps: SecretDeps & { environments: EnvironmentNames },
  by: Acting,
  ask: ConnectionAsk,
  at: Address,
): Promise<{ connection: Connection; secret: string }> {
  const { name, kind } = ask
  const scheme = schemeOf(ask)
  const secret = secretFor(kind, ask.secret)
  const named = await environmentAsked(deps, by.orgId, ask.environment)
  const { environment } = named
  const id = newId('conn')
  await deps.db.begin(async (tx) => {
    const row = { id, orgId: by.orgId, name, kind, scheme, ...named, createdBy: by.id }
    if (!(await store.insertConnection(tx, row))) throw taken(name)
    await replaceOwned(tx, deps, { orgId: by.orgId, ownerId: id }, { secret, overlapMs: 0 })
    await record(tx, by, { action: 'connections.create', target: target(id, name), after: { kind, environment } })
  })
  return { connection: await getConnection(deps, by, id, at), secret }
}

async function environmentAsked(
  deps: Deps & { environments: EnvironmentNames },
  orgId: OrgId,
  ref: string | undefined,
) {
  if (ref === undefined) return { environment: null, environmentId: null }
  const environment = await deps.environments.need(orgId, ref)
  return { environment, environmentId: (await environmentId(deps.db, orgId, environment)) ?? null }
}

const isTaken = (error: unknown) =>
  error instanceof PostgresError && error.constraint_name === 'connections_org_id_name_key'

const target = (id: string, name: string) => ({ type: 'connection', id, name })

function taken(name: string): Fault {
  return new Fault('CONFLICT', { path: 'name', name }, `This org has a connection \`${name}\` already.`)
}

/** What the kind takes and needs of its scheme. */
function schemeOf({ kind, hmac, bearer, event, dedupe }: ConnectionAsk): SchemeChoice {
  const misplaced = (path: string, only: string) =>
    new Fault('VALIDATION_FAILED', { path }, `${path}: goes with the kind ${only} only; leave it out.`)
  if (kind === 'hmac' && !hmac)
    throw new Fault('VALIDATION_FAILED', { path: 'hmac' }, 'hmac: the kind `hmac` needs { header, encoding } at least.')
  if (kind !== 'hmac' && hmac) throw misplaced('hmac', '`hmac`')
  if (kind !== 'bearer' && bearer) throw misplaced('bearer', '`bearer`')
  const saysItself = ['github', 'stripe', 'slack'].includes(kind)
  if (saysItself && event) throw misplaced('event', '`standard-webhooks`, `hmac` or `bearer`')
  if ((saysItself || kind === 'standard-webhooks') && dedupe) throw misplaced('dedupe', '`hmac` or `bearer`')
  return {
    hmac: hmac ?? null,
    bearer: kind === 'bearer' ? (bearer ?? { header: 'Authorization', prefix: 'Bearer ' }) : null,
    event: event ?? null,
    dedupe: dedupe ?? null,
  }
}

function secretFor(kind: ConnectionKind, given: string | undefined): string {
  if (given === undefined) return newOwnedSecret()
  if (kind === 'standard-webhooks' && !standardKey(given))
    throw new Fault(
      'VALIDATION_FAILED',
      { path: 'secret' },
      'secret: must be standard base64 of 24 to 64 bytes, with or without `whsec_` in front.',
    )
  return given
}

export async function listConnections(
  deps: Deps,
  caller: Caller,
  page: { after: string | undefined; limit: number },
  at: Address,
): Promise<Connection[]> {
  const rows = await store.listConnections(deps.db, caller.orgId, page)
  const ids = rows.map((row) => row.id)
  const states = await ownedStates(deps.db, caller.orgId, ids)
  return Promise.all(rows.map((row) => present(deps, row, { state: states.get(row.id), at })))
}

export async function getConnection(
  deps: Deps,
  caller: { orgId: OrgId },
  id: ConnectionId,
  at: Address,
): Promise<Connection> {
  const row = await needConnection(deps, caller, id)
  const state = (await ownedStates(deps.db, caller.orgId, [id])).get(id)
  return present(deps, row, { state, at })
}

export async function needConnection(deps: Deps, caller: { orgId: OrgId }, id: ConnectionId): Promise<ConnectionRow> {
  const row = await store.findConnection(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { connection: id })
  return row
}

/** By its id or its name; undefined: there is none. An id need not be there any more: its deliveries are. */
export async function findConnectionId(deps: Deps, orgId: OrgId, ref: string): Promise<string | undefined> {
  const found = await store.idOfConnection(deps.db, orgId, ref)
  return found ?? (ConnectionId.safeParse(ref).success ? ref : undefined)
}

/** The names among these that no connection of the org has. */
export async function namesWithout(deps: Deps, orgId: OrgId, names: readonly string[]): Promise<string[]> {
  const there = names.length === 0 ? [] : await store.namesThere(deps.db, orgId, names)
  return names.filter((name) => !there.includes(name))
}

export interface ConnectionChange {
  connection: ConnectionId
  name?: string | undefined
  enabled?: boolean | undefined
}

export async function updateConnection(
  deps: Deps,
  by: Acting,
  ask: ConnectionChange,
  at: Address,
): Promise<Connection> {
  const id = ask.connection
  await needConnection(deps, by, id)
  await deps.db.begin(async (tx) => {
    await store.lockConnection(tx, by.orgId, id)
    const before = await store.findConnection(tx, by.orgId, id)
    if (!before) throw new Fault('NOT_FOUND', { connection: id })
    const after = { name: ask.name ?? before.name, enabled: ask.enabled ?? before.enabled }
    await store.changeConnection(tx, by.orgId, { id, ...after }).catch((error: unknown) => {
      throw isTaken(error) ? taken(after.name) : error
    })
    await record(tx, by, {
      action: 'connections.update',
      target: target(id, after.name),
      before: { name: before.name, enabled: before.enabled },
      after,
    })
  })
  return getConnection(deps, by, id, at)
}

/** Its address is gone for good. Its deliveries stay. */
export async function deleteConnection(deps: Deps, by: Acting, id: ConnectionId): Promise<void> {
  await deps.db.begin(async (tx) => {
    await store.lockConnection(tx, by.orgId, id)
    const before = await store.findConnection(tx, by.orgId, id)
    if (!before) throw new Fault('NOT_FOUND', { connection: id })
    await removeOwned(tx, { orgId: by.orgId, ownerId: id })
    await store.removeConnection(tx, by.orgId, id)
    const { name, kind } = before
    await record(tx, by, { action: 'connections.delete', target: target(id, name), before: { name, kind } })
  })
}

export interface SecretAsk {
  connection: ConnectionId
  secret?: string | undefined
  overlapMs: number
}

/** Asked a second time with the secret that is set, it changes nothing but what `overlapMs` 0 ends. */
export async function setConnectionSecret(
  deps: SecretDeps,
  by: Acting,
  { connection: id, secret: given, overlapMs }: SecretAsk,
  at: Address,
): Promise<{ connection: Connection; secret: string }> {
  const { kind } = await needConnection(deps, by, id)
  const secret = secretFor(kind, given)
  await deps.db.begin(async (tx) => {
    await store.lockConnection(tx, by.orgId, id)
    const row = await store.findConnection(tx, by.orgId, id)
    if (!row) throw new Fault('NOT_FOUND', { connection: id })
    const owner = { orgId: by.orgId, ownerId: id }
    const { isNew, hasEnded, previousUntil } = await replaceOwned(tx, deps, owner, { secret, overlapMs })
    if (isNew) await store.noteConnectionRotated(tx, by.orgId, id)
    else if (!hasEnded) return
    const after = { isGiven: given !== undefined, isNew, previousSecretUntil: previousUntil?.getTime() ?? null }
    await record(tx, by, { action: 'connections.setSecret', target: target(id, row.name), after })
  })
  return { connection: await getConnection(deps, by, id, at), secret }
}

async function present(
  { db }: Deps,
  row: ConnectionRow,
  { state, at }: { state: OwnedState | undefined; at: Address },
): Promise<Connection> {
  const { orgId, createdAt, rotatedAt, scheme, environmentId: _, ...rest } = row
  return {
    ...rest,
    ...scheme,
    id: row.id as ConnectionId,
    ...addressOf(at, `/v1/inbound/${row.id}`),
    hasSecret: state?.hasSecret ?? false,
    createdAt: createdAt.getTime(),
    rotatedAt: rotatedAt?.getTime() ?? null,
    previousSecretUntil: state?.previousUntil?.getTime() ?? null,
    lastDeliveryAt: (await lastVerified(db, orgId, row.id))?.getTime() ?? null,
  }
}
