/** The access matrix: every row of the operation table × every kind of credential, with what the specification says to it. */
import { type AnyOp, type Credential, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { pathNames } from '@windlass/shared/ops/place.ts'
import { type Role, ROLES, type Scope, SCOPES } from '@windlass/shared/scopes.ts'
import type { Bearers } from './matrix-bearers.ts'
import { type Args, ownedNames, REFERENCES, sampleArgs } from './matrix-samples.ts'
import type { Tenant } from './tenants.ts'

/** `passes`: whatever comes, it is no refusal of the credential. `lacks` is what a 403 says is missing. */
export type Expected = 'passes' | 401 | 404 | { lacks: 'session' | 'role' | 'scopes' }

export interface Knock {
  /** The credential in words. */
  as: string
  authorization: string | undefined
  args: Args
  expected: Expected
}

export interface World {
  ours: Tenant
  theirs: Tenant
  bearers: Bearers
}

export interface Kind {
  name: string
  /** For rows that one of these serves; empty: for rows that anybody may ask. */
  credentials: readonly Credential[]
  /** Why a row has no such case; nothing when it must have one. */
  unless?: (row: AnyOp) => string | undefined
  knocks: (row: AnyOp, world: World) => Knock[]
}

const CALLER: readonly Credential[] = ['key', 'session']
const ALL: readonly Credential[] = [...CALLER, 'runner', 'run']

/** By the specification, section 5, and the contract's columns: session only, then the role, then the scopes. */
export function expectedOf(row: AnyOp, has: { session: boolean; role: Role; scopes: readonly Scope[] }): Expected {
  if (isSessionOnly(row) && !has.session) return { lacks: 'session' }
  if (ROLES.indexOf(has.role) < ROLES.indexOf(row.role ?? 'viewer')) return { lacks: 'role' }
  const allowed = has.scopes.length === 0 || has.scopes.some((scope) => row.scope.includes(scope))
  return allowed ? 'passes' : { lacks: 'scopes' }
}

/** A bearer that opens the row for its own tenant. */
export function goodBearer(row: AnyOp, tenant: Tenant, bearers: Bearers): string {
  if (row.credentials.includes('runner')) return bearers.runner(tenant)
  if (row.credentials.includes('run')) return tenant.runToken
  return isSessionOnly(row) ? tenant.session : tenant.owner
}

function refused(
  name: string,
  credentials: readonly Credential[],
  headers: (bearers: Bearers) => Record<string, string | undefined>,
): Kind {
  return {
    name,
    credentials,
    knocks: (row, { ours, bearers }) =>
      Object.entries(headers(bearers)).map(([as, authorization]) => {
        return { as, authorization, args: sampleArgs(row, ours), expected: 401 }
      }),
  }
}

const bearer = (credential: string) => `Bearer ${credential}`
const bearersOf = (credentials: Record<string, string>) =>
  Object.fromEntries(Object.entries(credentials).map(([as, credential]) => [as, bearer(credential)]))

const needsOrg = (row: AnyOp) => (pathNames(row.path).includes('org') ? undefined : 'its path names no org')
const needsOwned = (row: AnyOp) => (ownedNames(row).length > 0 ? undefined : 'its path names nothing that an org owns')

export const KINDS: readonly Kind[] = [
  refused('no credential', ALL, () => ({ 'no header': undefined })),
  refused('malformed header', ALL, ({ malformed }) => malformed),
  refused('garbage', ALL, ({ garbage }) => bearersOf(garbage)),
  refused('wrong checksum', ALL, ({ mistyped }) => bearersOf(mistyped)),
  refused('unknown', ALL, ({ unknown }) => bearersOf(unknown)),
  refused('expired', ALL, ({ expired }) => bearersOf(expired)),
  refused('revoked', ALL, ({ revoked }) => bearersOf(revoked)),
  refused('forged', ['runner', 'run'], ({ forged }) => bearersOf(forged)),
  refused('a credential of another kind', CALLER, ({ ofRunners, ofPrograms, ofJoiners }) =>
    bearersOf({ ...ofRunners, ...ofPrograms, ...ofJoiners }),
  ),
  refused('a credential of another kind', ['runner'], ({ ofCallers, ofPrograms, ofJoiners }) =>
    bearersOf({ ...ofCallers, ...ofPrograms, ...ofJoiners }),
  ),
  refused('a credential of another kind', ['run'], ({ ofCallers, ofRunners, ofJoiners }) =>
    bearersOf({ ...ofCallers, ...ofRunners, ...ofJoiners }),
  ),
  {
    name: 'key of a role, without scopes',
    credentials: CALLER,
    knocks: (row, world) => ROLES.map((role) => keyKnock(row, world, role, [])),
  },
  {
    name: 'key of a role, each scope by itself',
    credentials: CALLER,
    knocks: (row, world) => ROLES.flatMap((role) => SCOPES.map((scope) => keyKnock(row, world, role, [scope]))),
  },
  {
    name: 'key of a role, all scopes but the right ones',
    credentials: CALLER,
    unless: (row) => (row.scope.length === SCOPES.length ? 'every scope is right' : undefined),
    knocks: (row, world) => {
      const others = SCOPES.filter((scope) => !row.scope.includes(scope))
      return ROLES.map((role) => keyKnock(row, world, role, others))
    },
  },
  {
    name: 'session of a role',
    credentials: CALLER,
    knocks: (row, { ours, bearers }) =>
      ROLES.map((role) => ({
        as: `session, ${role}`,
        authorization: bearer(bearers.session(role)),
        args: sampleArgs(row, ours),
        expected: expectedOf(row, { session: true, role, scopes: [] }),
      })),
  },
  {
    name: "another org's credential on this org's path",
    credentials: CALLER,
    unless: needsOrg,
    knocks: (row, { ours, bearers }) =>
      Object.entries(bearers.strangers).map(([as, credential]) => {
        return { as, authorization: bearer(credential), args: sampleArgs(row, ours), expected: 404 }
      }),
  },
  {
    name: "another org's credential with this org's ids",
    credentials: ALL,
    unless: needsOwned,
    knocks: (row, world) => [foreign(row, world, { by: world.theirs, of: world.ours })].flat(),
  },
  {
    name: "this org's credential with another org's ids",
    credentials: ALL,
    unless: needsOwned,
    knocks: (row, world) => [foreign(row, world, { by: world.ours, of: world.theirs })].flat(),
  },
  {
    name: "another org's credential with this org's ids, whatever it may do",
    credentials: CALLER,
    unless: (row) => needsOwned(row) ?? (needsOrg(row) === undefined ? 'its path names the org' : undefined),
    knocks: (row, { ours, bearers }) =>
      Object.entries(bearers.strangers).map(([as, credential]) => {
        return { as, authorization: bearer(credential), args: sampleArgs(row, ours), expected: 404 }
      }),
  },
  {
    name: 'an id that nothing can have',
    credentials: CALLER,
    unless: (row) => (malformable(row).length > 0 ? undefined : 'its path names nothing that has to be there'),
    knocks: (row, { ours, bearers }) =>
      malformable(row).flatMap((name) =>
        ['NO such id!', '\0', '0'].map((id) => ({
          as: `${name} ${JSON.stringify(id)}`,
          authorization: bearer(goodBearer(row, ours, bearers)),
          args: { ...sampleArgs(row, ours), [name]: id },
          expected: 404,
        })),
      ),
  },
  {
    name: "this org's credential with another org's things beside the path",
    credentials: CALLER,
    unless: (row) => (row.id in REFERENCES ? undefined : 'it is given nothing of an org beside its path'),
    knocks: (row, { ours, theirs, bearers }) => {
      const name = REFERENCES[row.id] ?? ''
      const args = { ...sampleArgs(row, ours), [name]: theirs.ids[name] }
      // A filter that names nothing finds nothing; `filters.test.ts` holds that against what is found.
      const expected = row.method === 'GET' ? 'passes' : 404
      return [{ as: `owner, ${name}`, authorization: bearer(goodBearer(row, ours, bearers)), args, expected }]
    },
  },
  {
    name: "another run's token",
    credentials: ['run'],
    knocks: (row, { ours, theirs }) => [
      { as: 'of this org', authorization: bearer(ours.otherRunToken), args: sampleArgs(row, ours), expected: 404 },
      { as: 'of another org', authorization: bearer(theirs.runToken), args: sampleArgs(row, ours), expected: 404 },
    ],
  },
  {
    name: 'the right credential',
    credentials: ['runner', 'run'],
    knocks: (row, { ours, bearers }) => [
      {
        as: 'right',
        authorization: bearer(goodBearer(row, ours, bearers)),
        args: sampleArgs(row, ours),
        expected: 'passes',
      },
    ],
  },
  {
    name: 'anybody',
    credentials: [],
    knocks: (row, { ours, bearers }) =>
      Object.entries({
        nobody: undefined,
        ...bearers.malformed,
        ...bearersOf({ ...bearers.garbage, ...bearers.ofCallers }),
      }).map(([as, authorization]) => ({ as, authorization, args: sampleArgs(row, ours), expected: 'passes' })),
  },
]

/** A name that a row gives to what it makes is told what is wrong with it. */
const malformable = (row: AnyOp) =>
  pathNames(row.path).filter((name) => !(row.id in CREATES_BY_NAME && name === 'name'))

function keyKnock(row: AnyOp, { ours, bearers }: World, role: Role, scopes: readonly Scope[]): Knock {
  return {
    as: `key, ${role} [${scopes.length > 2 ? `${scopes.length} scopes` : scopes.join(' ')}]`,
    authorization: bearer(bearers.key(role, scopes)),
    args: sampleArgs(row, ours),
    expected: expectedOf(row, { session: false, role, scopes }),
  }
}

/** One knock for each thing in the path that belongs to an org, with all else as it should be. */
function foreign(row: AnyOp, { bearers }: World, { by, of }: { by: Tenant; of: Tenant }): Knock[] {
  return ownedNames(row).map((name) => ({
    as: `${by.org}, ${name} of ${of.org}`,
    authorization: bearer(goodBearer(row, by, bearers)),
    args: { ...sampleArgs(row, by), [name]: of.ids[name] },
    expected: row.id in CREATES_BY_NAME ? 'passes' : 404,
  }))
}

/** What an org names itself may be named alike in another one: these rows make it there. */
const CREATES_BY_NAME: Readonly<Record<string, true>> = { 'variables.set': true, 'secrets.set': true }
