import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Db } from '../db/client.ts'
import { createOrgCache } from '../limits/org-cache.ts'
import * as store from './store.ts'

/** Which environments exist, for triggers: at most one statement a second and environment. */
export interface EnvironmentNames {
  /** The name of the environment with this name or id; undefined: there is none. */
  find(orgId: OrgId, ref: string): Promise<string | undefined>
  /** The same; throws VALIDATION_FAILED, with what there is and how to make one, when there is none. */
  need(orgId: OrgId, ref: string): Promise<string>
  /**
   * Looks for all of these by one statement. What it resolves with remembers which are not there, so that a thousand
   * items that name one of them do not look for it each.
   */
  among(orgId: OrgId, refs: readonly string[]): Promise<EnvironmentNames>
  forget(orgId: OrgId, ref: string): void
}

/** A delete through another coordinator is seen after this long at the latest; one made here, at once. */
const FRESH_MS = 1000
const MOST_NAMES = 5000

/** More than an org may have, so that these are all. */
const ALL = 1000

export function createEnvironmentNames(db: Db): EnvironmentNames {
  const cache = createOrgCache<Promise<string | undefined>>({ max: MOST_NAMES, ttlMs: FRESH_MS })

  function remember(orgId: OrgId, ref: string, found: Promise<string | undefined>): Promise<string | undefined> {
    cache.set(orgId, ref, found)
    // What is not there is looked for again each time: somebody may create it now.
    found.then(
      (name) => name ?? cache.drop(orgId, ref, found),
      () => cache.drop(orgId, ref, found),
    )
    return found
  }

  const names: EnvironmentNames = {
    find(orgId, ref) {
      const known = cache.get(orgId, ref)
      if (known) return known
      return remember(
        orgId,
        ref,
        store.findEnvironment(db, orgId, ref).then((row) => row?.name),
      )
    },
    async need(orgId, ref) {
      const found = await names.find(orgId, ref)
      if (found === undefined) throw noSuch(ref, await store.listEnvironments(db, orgId, { limit: KNOWN_SHOWN + 1 }))
      return found
    },
    async among(orgId, refs) {
      const unknown = refs.filter((ref) => !cache.get(orgId, ref))
      if (unknown.length === 0) return names
      const listed = store.listEnvironments(db, orgId, { limit: ALL })
      const nameOf = listed.then((rows) => new Map(rows.flatMap(({ id, name }) => [[id, name] as const, [name, name]])))
      // Before the answer is there: what is deleted meanwhile is forgotten.
      for (const ref of unknown)
        void remember(
          orgId,
          ref,
          nameOf.then((map) => map.get(ref)),
        )
      const [there, map] = await Promise.all([listed, nameOf])
      return without(names, new Set(unknown.filter((ref) => !map.has(ref))), there)
    },
    forget: (orgId, ref) => cache.drop(orgId, ref),
  }
  return names
}

type There = readonly { name: string }[]

function without(names: EnvironmentNames, missing: ReadonlySet<string>, there: There): EnvironmentNames {
  return {
    ...names,
    find: async (orgId, ref) => (missing.has(ref) ? undefined : names.find(orgId, ref)),
    need: async (orgId, ref) => {
      if (missing.has(ref)) throw noSuch(ref, there)
      return names.need(orgId, ref)
    },
  }
}

const KNOWN_SHOWN = 10

function noSuch(environment: string, there: There): Fault {
  const names = there.slice(0, KNOWN_SHOWN + 1).map(({ name }) => name)
  const known = names.slice(0, KNOWN_SHOWN)
  const listed = known.map((name) => `\`${name}\``).join(', ') + (names.length > KNOWN_SHOWN ? ', …' : '')
  const others = known.length > 0 ? `There are: ${listed}.` : 'It has none yet.'
  return new Fault(
    'VALIDATION_FAILED',
    { path: 'environment', environment, known },
    `There is no environment \`${environment}\` in this org. ${others} Create it with \`windlass env create ${environment}\`, or leave \`environment\` out for what is set for the whole org.`,
  )
}
