import type { Runner } from '@windlass/shared/model/runner.ts'
import { PROTOCOL } from '@windlass/shared/wire/agent.ts'
import manifest from '../package.json' with { type: 'json' }
import { upgradeCommand } from './upgrade.ts'

/** Said of an agent that is older than this coordinator, with what installs the right one. */
export function upgradeOf(agent: { version: string; protocol: number }, base: string): Runner['upgrade'] {
  const reason = reasonFor(agent)
  if (reason === undefined) return null
  const message = `${reason} It goes on, and gets what it can execute; install the agent of this coordinator.`
  return { message, command: upgradeCommand(base) }
}

function reasonFor({ version, protocol }: { version: string; protocol: number }): string | undefined {
  if (protocol < PROTOCOL) return `The agent ${version} speaks protocol ${protocol}, this coordinator ${PROTOCOL}.`
  const isOlder = compare(numbersOf(version), numbersOf(manifest.version)) < 0
  return isOlder ? `The agent is of version ${version}, this coordinator of ${manifest.version}.` : undefined
}

/** Undefined for what is no version of a release: nothing is said of its age. */
function numbersOf(version: string): number[] | undefined {
  return /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number)
}

function compare(a: number[] | undefined, b: number[] | undefined): number {
  if (!a || !b) return 0
  const at = a.findIndex((part, i) => part !== b[i])
  return at === -1 ? 0 : a[at]! - b[at]!
}
