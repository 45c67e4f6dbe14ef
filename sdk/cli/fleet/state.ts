import type { Runner } from '@windlass/shared/model/runner.ts'
import { paint } from '../terminal.ts'
import type { Style } from '../terminal.ts'

/** How a machine is, in the one word that matters most. */
type StateName =
  | 'online'
  | 'offline'
  | 'draining'
  | 'drained'
  | 'cordoned'
  | 'quarantined'
  | 'unready'
  | 'outdated'
  | 'revoked'

function stateName(runner: Runner): StateName {
  const { state } = runner.intake
  if (state === 'revoked') return 'revoked'
  if (runner.status === 'offline') return 'offline'
  if (state !== 'open') return state
  if (runner.quarantine) return 'quarantined'
  if (runner.unready.length > 0) return 'unready'
  return runner.upgrade ? 'outdated' : 'online'
}

const STYLES: Record<StateName, Style> = {
  online: 'green',
  offline: 'red',
  draining: 'yellow',
  drained: 'cyan',
  cordoned: 'yellow',
  quarantined: 'red',
  unready: 'red',
  outdated: 'yellow',
  revoked: 'red',
}

/** The word in its colour, for standard output. */
export function stateText(runner: Runner): string {
  const state = stateName(runner)
  return paint(STYLES[state], state, process.stdout)
}

/** What is in force on a machine, in words. */
export function isolationText(isolation: Runner['isolation']): string {
  if (!isolation) return 'not known yet'
  const { level, user, cgroup, network } = isolation
  const users = user === 'own' ? 'users of their own' : "the agent's user"
  const groups = cgroup ? 'cgroups' : 'no cgroups'
  return `${level}, ${users}, ${groups}, ${network === 'none' ? 'no network' : 'network of the host'}`
}
