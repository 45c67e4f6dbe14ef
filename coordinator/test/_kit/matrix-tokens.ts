/** Every credential that the matrix shows. */
import { mintSecret } from '@windlass/shared/api-key.ts'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Role, ROLES, type Scope, SCOPES } from '@windlass/shared/scopes.ts'
import { SignJWT } from 'jose'
import { anAgent, keyPair } from './agent.ts'
import { aKey, aSession } from './credentials.ts'
import type { Tenant } from './tenants.ts'

type Named = Record<string, string>

export interface Tokens {
  /** Whole headers. */
  malformed: Record<string, string>
  garbage: Named
  mistyped: Named
  unknown: Named
  expired: Named
  revoked: Named
  forged: Named
  /** Good ones, by what they are for. */
  ofCallers: Named
  ofRunners: Named
  ofPrograms: Named
  ofJoiners: Named
  /** Good ones of another org. */
  strangers: Named
  key(role: Role, scopes: readonly Scope[]): string
  session(role: Role): string
  runner(tenant: Tenant): string
}

const LISTS: readonly (readonly Scope[])[] = [[], ...SCOPES.map((scope) => [scope])]

export async function makeTokens(ours: Tenant, theirs: Tenant, more: readonly (readonly Scope[])[]): Promise<Tokens> {
  const { db, orgId } = ours.c
  const keys = new Map<string, string>()
  const sessions = new Map<Role, string>()
  const nameOf = (role: Role, scopes: readonly Scope[]) => [role, ...scopes].join(' ')
  for (const role of ROLES) {
    sessions.set(role, await aSession(db, { orgId, role }))
    for (const scopes of [...LISTS, ...more]) keys.set(nameOf(role, scopes), await aKey(db, { orgId, role, scopes }))
  }
  const runners = new Map([
    [ours, await ours.agent.token()],
    [theirs, await theirs.agent.token()],
  ])
  const { registrationToken } = await ours.c.call(ops.pools.createToken, { pool: ours.c.poolId })
  return {
    malformed: {
      'another scheme': `Basic ${Buffer.from(`key:${ours.owner}`).toString('base64')}`,
      'no scheme': ours.owner,
      'no credential': 'Bearer',
      'two credentials': `Bearer ${ours.owner} ${ours.owner}`,
      'a comma': `Bearer ${ours.owner},Bearer ${ours.owner}`,
    },
    garbage: { plain: 'nonsense', 'looks like a JWT': 'a.b.c', prefix: 'wl_', 'other case': ours.owner.toUpperCase() },
    mistyped: { key: mistyped(ours.owner), session: mistyped(ours.session), 'cut off': ours.owner.slice(0, -1) },
    unknown: {
      key: mintSecret('wl_'),
      session: mintSecret('wls_'),
      runner: await ours.agent.token({ kid: newId('rnr') }),
    },
    expired: {
      key: await aKey(db, { orgId, state: 'expired' }),
      session: await aSession(db, { orgId, state: 'expired' }),
      runner: await ours.agent.token({ issuedAt: Math.floor(Date.now() / 1000) - 3600, expiresIn: '2 h' }),
    },
    revoked: {
      key: await aKey(db, { orgId, state: 'revoked' }),
      session: await aSession(db, { orgId, state: 'revoked' }),
      runner: await aRevokedRunner(ours),
    },
    forged: await forged(ours),
    ofCallers: { key: ours.owner, session: ours.session },
    ofRunners: { runner: runners.get(ours)! },
    ofPrograms: { program: ours.runToken },
    ofJoiners: { 'registration token': registrationToken.token },
    strangers: {
      owner: theirs.owner,
      session: theirs.session,
      'viewer with a scope': await aKey(db, { orgId: theirs.c.orgId, role: 'viewer', scopes: ['billing:read'] }),
    },
    key: (role, scopes) => known(keys.get(nameOf(role, scopes)), nameOf(role, scopes)),
    session: (role) => known(sessions.get(role), role),
    runner: (tenant) => known(runners.get(tenant), tenant.org),
  }
}

function known(credential: string | undefined, name: string): string {
  if (credential === undefined) throw new Error(`no credential was made for ${name}`)
  return credential
}

/** One character of the random part is another: the checksum does not fit any more. */
function mistyped(secret: string): string {
  return secret.slice(0, 8) + (secret[8] === 'a' ? 'b' : 'a') + secret.slice(9)
}

async function aRevokedRunner({ c }: Tenant): Promise<string> {
  const agent = await anAgent(c, { name: 'revoked' })
  await c.db`update runner_intake set state = 'revoked' where runner_id = ${agent.id}`
  return agent.token()
}

/** Signed by a key that nobody has registered, or meant for another audience. */
async function forged({ agent, ids }: Tenant): Promise<Named> {
  const { privateKey } = await keyPair()
  const program = new SignJWT({ org: ids['org'], epoch: 1, runner: agent.id })
    .setProtectedHeader({ alg: 'EdDSA' })
    .setSubject(ids['run'] ?? '')
    .setAudience('runner')
    .setIssuedAt()
    .setExpirationTime('5 minutes')
  return {
    runner: await agent.token({ key: privateKey }),
    'for another audience': await agent.token({ aud: 'somebody-else' }),
    program: await program.sign(privateKey),
    unsigned: `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"x"}').toString('base64url')}.`,
  }
}
