import { createBySize } from './by-size.ts'

/** Remembers something for each org, for a short time. Where room runs out, the org that has most of it makes room. */
export interface OrgCache<V> {
  get(orgId: string, key: string): V | undefined
  set(orgId: string, key: string, value: V): void
  /** Forgets it. With `value`: as long as that is what is remembered. */
  drop(orgId: string, key: string, value?: V): void
  forget(orgId: string): void
}

interface Entry<V> {
  value: V
  /** By `performance.now()`. */
  until: number
}

export function createOrgCache<V>({ max, ttlMs }: { max: number; ttlMs: number }): OrgCache<V> {
  /** In the order in which they were set, so the first is over first. */
  const byOrg = new Map<string, Map<string, Entry<V>>>()
  const sizes = createBySize()
  let count = 0

  function remove(orgId: string, own: Map<string, Entry<V>>, key: string): void {
    if (!own.delete(key)) return
    count--
    if (own.size > 0) return sizes.set(orgId, own.size)
    sizes.remove(orgId)
    byOrg.delete(orgId)
  }

  function makeRoom(): void {
    while (count > max) {
      const orgId = sizes.largest()!
      const own = byOrg.get(orgId)!
      const [first] = own.keys()
      remove(orgId, own, first!)
    }
  }

  return {
    get(orgId, key) {
      const entry = byOrg.get(orgId)?.get(key)
      return entry && entry.until > performance.now() ? entry.value : undefined
    },
    set(orgId, key, value) {
      const before = byOrg.get(orgId)
      if (before) remove(orgId, before, key)
      const own = byOrg.get(orgId) ?? new Map<string, Entry<V>>()
      byOrg.set(orgId, own.set(key, { value, until: performance.now() + ttlMs }))
      sizes.set(orgId, own.size)
      count++
      makeRoom()
    },
    drop(orgId, key, value) {
      const own = byOrg.get(orgId)
      if (own && (value === undefined || own.get(key)?.value === value)) remove(orgId, own, key)
    },
    forget(orgId) {
      count -= byOrg.get(orgId)?.size ?? 0
      sizes.remove(orgId)
      byOrg.delete(orgId)
    },
  }
}
