import type { PoolSettings } from '@windlass/shared/model/pool.ts'

/** Why an agent cannot execute runs as its pool wants it, in words; undefined: it can. A claim looks at the same in SQL. */
export function lacking(
  { capabilities }: { capabilities: readonly string[] },
  { isolation, network }: Pick<PoolSettings, 'isolation' | 'network'>,
): string | undefined {
  const wantsBubblewrap = isolation === 'bubblewrap' || network === 'none'
  if (wantsBubblewrap && !capabilities.includes('bubblewrap'))
    return 'cannot run programs in `bubblewrap`, as the pool wants it'
  return undefined
}
