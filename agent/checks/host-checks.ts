import path from 'node:path'
import type { AgentConfig } from '../config.ts'
import type { Hooks } from '../hooks/hooks.ts'
import type { Bundles } from '../run/bundle/bundles.ts'
import type { Spool } from '../run/spool/spool.ts'
import type { Check } from './checks.ts'
import { diskChecks, folderCheck } from './disk.ts'

const HOOK_FRESH_MS = 5_000
/** A disk may take seconds to say that it cannot read. */
const SPOOL_FRESH_MS = 2_000

interface HostParts {
  spool: Pick<Spool, 'trouble' | 'reader'>
  hooks: Pick<Hooks, 'trouble' | 'preClaim'>
  bundles: Pick<Bundles, 'empty'>
}

/** What has to be in order here before this agent takes work. */
export function hostChecks(
  { home, diskReserveBytes }: Pick<AgentConfig, 'home' | 'diskReserveBytes'>,
  { spool, hooks, bundles }: HostParts,
): Check[] {
  return [
    ...diskChecks(home, diskReserveBytes, () => bundles.empty()),
    folderCheck('bundles', path.join(home, 'bundles')),
    folderCheck('workspaces', path.join(home, 'workspaces')),
    folderCheck('spool', path.join(home, 'spool')),
    { name: 'spool-writes', freshMs: 0, look: () => spool.trouble() },
    { name: 'spool-reads', freshMs: SPOOL_FRESH_MS, look: () => spool.reader.trouble() },
    { name: 'hooks', freshMs: HOOK_FRESH_MS, look: () => hooks.trouble() },
    // Where the hooks themselves are in disorder, that is said once.
    {
      name: 'pre-claim',
      freshMs: HOOK_FRESH_MS,
      isCostly: true,
      look: () => (hooks.trouble() === undefined ? hooks.preClaim() : undefined),
    },
  ]
}
