import { LRUCache } from 'lru-cache'
import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Db } from '../db/client.ts'
import * as store from './store.ts'

/** Which environments exist, for triggers: at most one statement a second and environment. */
export interface EnvironmentNames {
  /** The name of the environment with this name or id; undefined: there is none. */
  find(orgId: OrgId, ref: string): Promise<string | undefined>
  /** The same; throws VALIDATION_FAILED, with what there is and how to make one, when there is none. */
  need(orgId: OrgId, ref: string): Promise<string>
  forget(orgId: OrgId, ref: string): void
}

/** A delete through another coordinator is seen after this long at the latest; one made here, at once. */
const FRESH_MS = 1000
const MOST_NAMES = 5000

export function createEnvironmentNames(db: Db): EnvironmentNames {
  const cache = new LRUCache<string, Promise<string | undefined>>({ max: MOST_NAMES, ttl: FRESH_MS })
  const drop = (key: string, found: Promise<string | undefined>) => {
    if (cache.peek(key) === found) cache.delete(key)
  }
  const names: EnvironmentNames = {
    find(orgId, ref) {
      const key = `${orgId}/${ref}`
      const known = cache.get(key)
      if (known) return known
      const found = store.findEnvironment(db, orgId, ref).then((row) => row?.name)
      cache.set(key, found)
      // What is not there is looked for again each time: somebody may create it now.
      found.then(
        (name) => name ?? drop(key, found),
        () => drop(key, found),
      )
      return found
    },
    async need(orgId, ref) {
      const found = await names.find(orgId, ref)
      if (found === undefined) throw noSuch(ref, await store.listEnvironments(db, orgId, { limit: KNOWN_SHOWN + 1 }))
      return found
    },
    forget: (orgId, ref) => void cache.delete(`${orgId}/${ref}`),
  }
  return names
}

const KNOWN_SHOWN = 10

function noSuch(environment: string, there: readonly { name: string }[]): Fault {
  const names = there.map(({ name }) => name)
  const known = names.slice(0, KNOWN_SHOWN)
  const listed = known.map((name) => `\`${name}\``).join(', ') + (names.length > KNOWN_SHOWN ? ', …' : '')
  const others = known.length > 0 ? `There are: ${listed}.` : 'It has none yet.'
  return new Fault(
    'VALIDATION_FAILED',
    { path: 'environment', environment, known },
    `There is no environment \`${environment}\` in this org. ${others} Create it with \`windlass env create ${environment}\`, or leave \`environment\` out for what is set for the whole org.`,
  )
}
