import { existsSync } from 'node:fs'
import type { HostIsolation, UidRange } from '../../isolation/plan.ts'
import { PLAIN } from '../../isolation/plan.ts'
import { toolPath } from '../../isolation/tools.ts'

/** Why a test that needs these cannot be had here; false where it can. */
export const NEEDS_ROOT = process.getuid?.() === 0 ? false : 'it needs root, to have runs execute as other users'
export const NEEDS_BUBBLEWRAP = toolPath('bwrap') ? false : 'it needs bubblewrap (apt-get install bubblewrap)'
export const NEEDS_CGROUP = existsSync('/sys/fs/cgroup/cgroup.controllers')
  ? NEEDS_ROOT
  : 'it needs a host with nothing but cgroup v2'

let taken = 0

/**
 * Users of this test alone: tests run beside each other, and where nobody reaps the children of the dead, those count as processes of their
 * user for long.
 */
export function ofUsers(more: Partial<Omit<HostIsolation, 'uids'>> = {}): HostIsolation & { uids: UidRange } {
  const first = 1_000_000 + (process.pid % 100_000) * 1000 + (taken++ % 10) * 100
  return { ...PLAIN, ...more, uids: { first, last: first + 99 } }
}
