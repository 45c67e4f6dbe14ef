/** The access matrix: every row of the operation table × every kind of credential, with what the specification says to it. */
import { type AnyOp, type Credential, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { pathNames } from '@windlass/shared/ops/fill-route.ts'
import { type Role, ROLES, type Scope, SCOPES } from '@windlass/shared/scopes.ts'
import type { Tokens } from './matrix-tokens.ts'
import { type Args, ownedNames, REFERENCES, sampleArgs } from './matrix-samples.ts'
import type { Tenant } from './tenants.ts'

/** `passes`: whatever comes, it is no refusal of the credential. `lacks` is what a 403 says is missing. */
export type Expected = 'passes' | 401 | 404 | { lacks: 'session' | 'role' | 'scopes' }

export interface Trial {
  /** The credential in words. */
  as: string
  authorization: string | undefined
  args: Args
  expected: Expected
}

export interface World {
  ours: Tenant
  theirs: Tenant
  tokens: Tokens
}

export interface Kind {
  name: string
  /** For rows that one of these serves; empty: for rows that anybody may ask. */
  credentials: readonly Credential[]
  /** Why a row has no such case; nothing when it must have one. */
  unless?: (row: AnyOp) => string | undefined
  trials: (row: AnyOp, world: World) => Trial[]
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

/** A token that opens the row for its own tenant. */
function rightToken(row: AnyOp, tenant: Tenant, tokens: Tokens): string {
  if (row.credentials.includes('runner')) return tokens.runner(tenant)
  if (row.credentials.includes('run')) return tenant.runToken
  return isSessionOnly(row) ? tenant.session : tenant.owner
}

function refused(
  name: string,
  credentials: readonly Credential[],
  headers: (tokens: Tokens) => Record<string, string | undefined>,
): Kind {
  return {
    name,
    credentials,
    trials: (row, { ours, tokens }) =>
      Object.entries(headers(tokens)).map(([as, authorization]) => {
        return { as, authorization, args: sampleArgs(row, ours), expected: 401 }
      }),
  }
}

const header = (credential: string) => `Bearer ${credential}`
const authorizationsOf = (credentials: Record<string, string>) =>
  Object.fromEntries(Object.entries(credentials).map(([as, credential]) => [as, header(credential)]))

const needsOrg = (row: AnyOp) => (pathNames(row.path).includes('org') ? undefined : 'its path names no org')
const needsOwned = (row: AnyOp) => (ownedNames(row).length > 0 ? undefined : 'its path names nothing that an org owns')

export const KINDS: readonly Kind[] = [
  refused('no credential', ALL, () => ({ 'no header': undefined })),
  refused('malformed header', ALL, ({ malformed }) => malformed),
  refused('garbage', ALL, ({ garbage }) => authorizationsOf(garbage)),
  refused('wrong checksum', ALL, ({ mistyped }) => authorizationsOf(mistyped)),
  refused('unknown', ALL, ({ unknown }) => authorizationsOf(unknown)),
  refused('expired', ALL, ({ expired }) => authorizationsOf(expired)),
  refused('revoked', ALL, ({ revoked }) => authorizationsOf(revoked)),
  refused('forged', ['runner', 'run'], ({ forged }) => authorizationsOf(forged)),
  refused('a credential of another kind', CALLER, ({ ofRunners, ofPrograms, ofJoiners }) =>
    authorizationsOf({ ...ofRunners, ...ofPrograms, ...ofJoiners }),
  ),
  refused('a credential of another kind', ['runner'], ({ ofCallers, ofPrograms, ofJoiners }) =>
    authorizationsOf({ ...ofCallers, ...ofPrograms, ...ofJoiners }),
  ),
  refused('a credential of another kind', ['run'], ({ ofCallers, ofRunners, ofJoiners }) =>
    authorizationsOf({ ...ofCallers, ...ofRunners, ...ofJoiners }),
  ),
  {
    name: 'key of a role, without scopes',
    credentials: CALLER,
    trials: (row, world) => ROLES.map((role) => keyTrial(row, world, role, [])),
  },
  {
    name: 'key of a role, each scope by itself',
    credentials: CALLER,
    trials: (row, world) => ROLES.flatMap((role) => SCOPES.map((scope) => keyTrial(row, world, role, [scope]))),
  },
  {
    name: 'key of a role, all scopes but the right ones',
    credentials: CALLER,
    unless: (row) => (row.scope.length === SCOPES.length ? 'every scope is right' : undefined),
    trials: (row, world) => {
      const others = SCOPES.filter((scope) => !row.scope.includes(scope))
      return ROLES.map((role) => keyTrial(row, world, role, others))
    },
  },
  {
    name: 'session of a role',
    credentials: CALLER,
    trials: (row, { ours, tokens }) =>
      ROLES.map((role) => ({
        as: `session, ${role}`,
        authorization: header(tokens.session(role)),
        args: sampleArgs(row, ours),
        expected: expectedOf(row, { session: true, role, scopes: [] }),
      })),
  },
  {
    name: "another org's credential on this org's path",
    credentials: CALLER,
    unless: needsOrg,
    trials: (row, { ours, tokens }) =>
      Object.entries(tokens.strangers).map(([as, credential]) => {
        return { as, authorization: header(credential), args: sampleArgs(row, ours), expected: 404 }
      }),
  },
  {
    name: "another org's credential with this org's ids",
    credentials: ALL,
    unless: needsOwned,
    trials: (row, world) => [foreign(row, world, { by: world.theirs, of: world.ours })].flat(),
  },
  {
    name: "this org's credential with another org's ids",
    credentials: ALL,
    unless: needsOwned,
    trials: (row, world) => [foreign(row, world, { by: world.ours, of: world.theirs })].flat(),
  },
  {
    name: "another org's credential with this org's ids, whatever it may do",
    credentials: CALLER,
    unless: (row) => needsOwned(row) ?? (needsOrg(row) === undefined ? 'its path names the org' : undefined),
    trials: (row, { ours, tokens }) =>
      Object.entries(tokens.strangers).map(([as, credential]) => {
        return { as, authorization: header(credential), args: sampleArgs(row, ours), expected: 404 }
      }),
  },
  {
    name: 'an id that nothing can have',
    credentials: CALLER,
    unless: (row) => (malformable(row).length > 0 ? undefined : 'its path names nothing that has to be there'),
    trials: (row, { ours, tokens }) =>
      malformable(row).flatMap((name) =>
        ['NO such id!', '\0', '0'].map((id) => ({
          as: `${name} ${JSON.stringify(id)}`,
          authorization: header(rightToken(row, ours, tokens)),
          args: { ...sampleArgs(row, ours), [name]: id },
          expected: 404,
        })),
      ),
  },
  {
    name: "this org's credential with another org's things beside the path",
    credentials: CALLER,
    unless: (row) => (row.id in REFERENCES ? undefined : 'it is given nothing of an org beside its path'),
    trials: (row, { ours, theirs, tokens }) => {
      const name = REFERENCES[row.id] ?? ''
      const args = { ...sampleArgs(row, ours), [name]: theirs.ids[name] }
      // A filter that names nothing finds nothing; `filters.test.ts` holds that against what is found.
      const expected = row.method === 'GET' ? 'passes' : 404
      return [{ as: `owner, ${name}`, authorization: header(rightToken(row, ours, tokens)), args, expected }]
    },
  },
  {
    name: "another run's token",
    credentials: ['run'],
    trials: (row, { ours, theirs }) => [
      { as: 'of this org', authorization: header(ours.otherRunToken), args: sampleArgs(row, ours), expected: 404 },
      { as: 'of another org', authorization: header(theirs.runToken), args: sampleArgs(row, ours), expected: 404 },
    ],
  },
  {
    name: 'the right credential',
    credentials: ['runner', 'run'],
    trials: (row, { ours, tokens }) => [
      {
        as: 'right',
        authorization: header(rightToken(row, ours, tokens)),
        args: sampleArgs(row, ours),
        expected: 'passes',
      },
    ],
  },
  {
    name: 'anybody',
    credentials: [],
    trials: (row, { ours, tokens }) =>
      Object.entries({
        nobody: undefined,
        ...tokens.malformed,
        ...authorizationsOf({ ...tokens.garbage, ...tokens.ofCallers }),
      }).map(([as, authorization]) => ({ as, authorization, args: sampleArgs(row, ours), expected: 'passes' })),
  },
]

/** A name that a row gives to what it makes is told what is wrong with it. */
const malformable = (row: AnyOp) =>
  pathNames(row.path).filter((name) => !(row.id in CREATES_BY_NAME && name === 'name'))

function keyTrial(row: AnyOp, { ours, tokens }: World, role: Role, scopes: readonly Scope[]): Trial {
  return {
    as: `key, ${role} [${scopes.length > 2 ? `${scopes.length} scopes` : scopes.join(' ')}]`,
    authorization: header(tokens.key(role, scopes)),
    args: sampleArgs(row, ours),
    expected: expectedOf(row, { session: false, role, scopes }),
  }
}

/** One trial for each thing in the path that belongs to an org, with all else as it should be. */
function foreign(row: AnyOp, { tokens }: World, { by, of }: { by: Tenant; of: Tenant }): Trial[] {
  return ownedNames(row).map((name) => ({
    as: `${by.org}, ${name} of ${of.org}`,
    authorization: header(rightToken(row, by, tokens)),
    args: { ...sampleArgs(row, by), [name]: of.ids[name] },
    expected: row.id in CREATES_BY_NAME ? 'passes' : 404,
  }))
}

/** What an org names itself may be named alike in another one: these rows make it there. */
const CREATES_BY_NAME: Readonly<Record<string, true>> = { 'variables.set': true, 'secrets.set': true }
