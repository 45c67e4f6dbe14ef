import type { OrgId } from '@windlass/shared/ids.ts'

/** What a look for what is due leaves out. */
export interface LeftOut<K> {
  /** All of these orgs. */
  orgs: OrgId[]
  /** And of other orgs what belongs to these. */
  keys: K[]
}

/** One by one, the orgs with the fewest first, up to `most` of all; orgs that have more are left out as a whole. */
export function leftOut<T, K>(
  byOrg: ReadonlyMap<OrgId, readonly T[]>,
  keyOf: (item: T) => K,
  most: number,
): LeftOut<K> {
  const ofOrgs = [...byOrg].map(([orgId, items]) => ({ orgId, keys: [...new Set(items.map(keyOf))] }))
  const out: LeftOut<K> = { orgs: [], keys: [] }
  for (const { orgId, keys } of ofOrgs.toSorted((a, b) => a.keys.length - b.keys.length))
    if (out.keys.length + keys.length <= most) out.keys.push(...keys)
    else out.orgs.push(orgId)
  return out
}
