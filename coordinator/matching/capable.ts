import type { PoolSettings } from '@windlass/shared/model/pool.ts'

/**
 * Why an agent cannot execute runs as its pool wants it, in words; undefined: it can. A claim looks at the same in SQL. An agent of
 * protocol 2 knows nothing of what a pool sets, and would execute runs without it.
 */
export function lacking(
  { protocol, capabilities }: { protocol: number; capabilities: readonly string[] },
  { isolation, network, limits }: Pick<PoolSettings, 'isolation' | 'network' | 'limits'>,
): string | undefined {
  const wantsBubblewrap = isolation === 'bubblewrap' || network === 'none'
  const hasLimits = Object.values(limits).some((limit) => limit !== null)
  if (protocol < 3 && (wantsBubblewrap || hasLimits))
    return 'has an agent that is too old to heed what the pool sets for runs'
  if (wantsBubblewrap && !capabilities.includes('bubblewrap'))
    return 'cannot run programs in `bubblewrap`, as the pool wants it'
  return undefined
}
