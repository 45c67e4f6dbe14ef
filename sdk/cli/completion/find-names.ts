import type { Runner } from '@windlass/shared/model/runner.ts'
import { createClient } from '../../client/index.ts'
import type { Client } from '../../client/index.ts'
import { LOCAL, readProfiles } from '../profiles.ts'
import { settingsFrom } from '../settings.ts'
import type { GlobalFlags } from '../settings.ts'

export interface FoundName {
  name: string
  about: string
}

// Somebody waits at the keyboard, and the process itself has taken a part of the second.
const DEADLINE_MS = 700
const MOST = 50

type Lookup = (client: Client, options: { deadlineMs: number }) => Promise<FoundName[]>

/** By the name of the argument or flag. */
const LOOKUPS = {
  workflow: async ({ workflows }, options) =>
    (await workflows.list({ limit: MOST }, options)).workflows.map((w) => ({ name: w.slug, about: w.description })),
  run: async ({ runs }, options) =>
    (await runs.list({ limit: MOST }, options)).runs.map((r) => ({
      name: r.id,
      about: `${r.workflow.slug}, ${r.status}`,
    })),
  input: async ({ inputs }, options) =>
    (await inputs.list({ limit: MOST }, options)).inputs.map((i) => ({ name: i.id, about: i.prompt })),
  environment: async ({ environments }, options) =>
    (await environments.list({ limit: MOST }, options)).environments.map((e) => ({ name: e.name, about: '' })),
  pool: async ({ pools }, options) =>
    (await pools.list({ limit: MOST }, options)).runnerPools.map((p) => ({
      name: p.name,
      about: `${p.runners} runners`,
    })),
  runner: async ({ runners }, options) => machinesByName((await runners.list({ limit: MOST }, options)).runners),
  key: async ({ keys }, options) =>
    (await keys.list({ limit: MOST }, options)).apiKeys
      .filter((key) => key.revokedAt === null)
      .map((key) => ({ name: key.id, about: `${key.name}, ${key.role}` })),
} satisfies Record<string, Lookup>

/** By the name, which is what people type; by the id where several share it. */
function machinesByName(machines: Runner[]): FoundName[] {
  const names = machines.map(({ name }) => name)
  return machines.map(({ id, name, pool, status }) => {
    const isOnly = names.indexOf(name) === names.lastIndexOf(name)
    return { name: isOnly ? name : id, about: `${isOnly ? id : name}, ${pool.name}, ${status}` }
  })
}

export type Findable = keyof typeof LOOKUPS | 'profile'

export function isFindable(name: string): name is Findable {
  return name === 'profile' || Object.hasOwn(LOOKUPS, name)
}

/** What there is of a kind just now; nothing where the service is away, slow, or refuses it. */
export async function findNames(kind: Findable, flags: GlobalFlags): Promise<FoundName[]> {
  try {
    if (kind === 'profile') return profileNames()
    return await LOOKUPS[kind](createClient(settingsFrom(flags)), { deadlineMs: DEADLINE_MS })
  } catch {
    // A complaint would stand in the middle of what is being typed.
    return []
  }
}

function profileNames(): FoundName[] {
  const { profiles } = readProfiles(process.env)
  const saved = Object.entries(profiles).map(([name, { url }]) => ({ name, about: url }))
  return [...saved, { name: LOCAL, about: 'what npm start runs' }]
}
