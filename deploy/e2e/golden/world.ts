import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createKey } from '@windlass/coordinator/accounts/api-keys.ts'
import { createOrg } from '@windlass/coordinator/accounts/orgs.ts'
import { createSession } from '@windlass/coordinator/accounts/sessions.ts'
import type { Database } from '@windlass/coordinator/db/client.ts'
import { type Client, createClient } from 'windlass/client'
import { startAgent, type TestAgent } from '../_kit/agents.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import type { Instance } from '../_kit/instance.ts'
import { until } from '../_kit/until.ts'
import { Names } from './stable.ts'

/** An org of its own, so that what one part does stands in no list of another. */
export interface Org {
  readonly slug: string
  readonly url: string
  readonly apiKey: string
  /** Session, for what no key may do. */
  readonly session: string
  readonly client: Client
  readonly agent: TestAgent
}

export interface World {
  instance(): Instance
  /** Client of the org of programs, whose pool `default` keeps waiting processes. */
  operator(): Client
  /** Agent of the pool that gives up the process of a waiting run. */
  forgetful(): TestAgent
  org(slug: Part): Org
  /** kill -9; resolves when the next one answers. */
  restartCoordinator(): Promise<void>
  /** A file that a program looks for. */
  mark(name: string): string
  /** The same behind another address: that of something between. */
  through(url: string): World
  /** Names for one part; each part counts its names anew. */
  names(): Names
  tables(): Promise<{ tables: string[]; columns: string[] }>
}

const PARTS = ['rest', 'mcp', 'cli'] as const
export type Part = (typeof PARTS)[number]

/** Programs that are executed beside each other. */
const SLOTS = '16'
const HOUR_MS = 3_600_000

/**
 * One coordinator for everything, an org with an agent for each kind of transcript, and the org `default` for programs.
 */
export function goldenWorld(): World {
  const orgs = new Map<Part, Org>()
  let forgetful: TestAgent | undefined
  const { current, database } = fileInstance({
    programs: [],
    env: {
      WINDLASS_SECRET_KEY: randomBytes(32).toString('base64'),
      WINDLASS_AGENT_SLOTS: SLOTS,
      WINDLASS_AGENT_SPARES: '0',
      // Programs keep their processes while they wait, however little memory the machine has left.
      WINDLASS_AGENT_PARKED_MOST: '100',
      WINDLASS_AGENT_MEMORY_RESERVE: '0',
      // Nothing is offered again, and no agent taken for dead, because the machine is busy.
      WINDLASS_OFFER_MS: '100000',
      WINDLASS_FENCE_MS: '300000',
      WINDLASS_LEASE_MS: '400000',
      WINDLASS_SWEEP_MS: '500',
      // Shown in the headers of each answer, and never reached.
      WINDLASS_LIMIT_IDENTITY_PER_MIN: '60000',
      WINDLASS_LIMIT_ORG_PER_MIN: '60000',
      WINDLASS_LIMIT_REFUSED_PER_MIN: '60000',
    },
    async onceUp(instance) {
      const made = PARTS.map(async (part) => orgs.set(part, await makeOrg(database(), instance, part)))
      const agent = { name: 'forgetful', pool: 'forgetful', env: { ...AGENT, WINDLASS_AGENT_PARKED_MS: '0' } }
      const started = startAgent(instance, agent).then((agent) => (forgetful = agent))
      await Promise.all([...made, started])
    },
    beforeStop: async () => {
      const agents = [...orgs.values()].map(({ agent }) => agent)
      if (forgetful) agents.push(forgetful)
      await Promise.all(agents.map((agent) => agent.stop()))
    },
  })

  const world: World = {
    instance: current,
    operator() {
      const access = JSON.parse(readFileSync(join(current().home, 'cli.json'), 'utf8')) as Record<string, string>
      return createClient({ url: access['url']!, apiKey: access['session']!, org: access['org']! })
    },
    forgetful: () => forgetful!,
    org: (part) => orgs.get(part)!,
    mark: (name) => join(current().home, `${name}.mark`),
    names: () => new Names(known(current())),
    restartCoordinator: () => restartCoordinator(current()),
    through(url) {
      const instance = current()
      const access = { ...instance.access, url }
      return {
        ...world,
        instance: () => ({ ...instance, access, client: createClient(access) }),
        org: (part) => ({ ...world.org(part), url }),
        names: () => new Names([...known(instance), ...known({ ...instance, access })]),
      }
    },
    tables: () => catalogueOf(database()),
  }
  return world
}

/** Straight into the database, as the operator of an installation does it. */
async function makeOrg({ db }: Database, instance: Instance, slug: Part): Promise<Org> {
  const operator = { kind: 'operator', id: 'golden', name: 'golden', via: 'admin', requestId: null } as const
  const { id: orgId } = await createOrg(db, operator, { slug, name: `Org of ${slug}` })
  const author = { ...operator, orgId }
  const { key: apiKey } = await createKey(db, author, { name: 'golden', role: 'owner' })
  const { secret: session } = await createSession(db, author, { name: 'golden', role: 'owner', lifeMs: HOUR_MS })
  const { url } = instance.access
  const client = createClient({ url, apiKey, session, org: slug })
  const options = { name: `${slug}-agent`, pool: 'default', slots: 4, env: AGENT }
  const agent = await startAgent({ ...instance, access: { ...instance.access, apiKey, org: slug }, client }, options)
  return { slug, url, apiKey, session, client, agent }
}

async function restartCoordinator(instance: Instance): Promise<void> {
  const pid = (await instance.pidOf('coordinator'))!
  process.kill(pid, 'SIGKILL')
  const answers = async () => {
    const now = await instance.pidOf('coordinator')
    return now !== undefined && now !== pid && (await fetch(`${instance.access.url}/readyz`)).ok
  }
  await until('the next coordinator', () => answers().catch(() => false), { ms: 60_000 })
}

async function catalogueOf({ db }: Database): Promise<{ tables: string[]; columns: string[] }> {
  const rows = await db<{ tableName: string; columnName: string }[]>`
    select table_name, column_name
    from information_schema.columns
    where table_schema = 'public'`
  const unique = (of: (row: { tableName: string; columnName: string }) => string) => [...new Set(rows.map(of))]
  return { tables: unique((row) => row.tableName), columns: unique((row) => row.columnName) }
}

/** No process in reserve: three agents more would have three, and nobody measures here. */
const AGENT = { WINDLASS_AGENT_SPARES: '0', WINDLASS_AGENT_PARKED_MOST: '100', WINDLASS_AGENT_MEMORY_RESERVE: '0' }

function known({ home, access }: Instance): [string, string][] {
  const { host } = new URL(access.url)
  return [
    [home, '<home>'],
    [access.url, '<url>'],
    [host, '<address>'],
    [host.replace('127.0.0.1', '127.0.0.2'), '<address of nobody>'],
  ]
}
