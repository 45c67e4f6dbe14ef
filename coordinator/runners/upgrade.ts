import { OLDEST_PROTOCOL, PROTOCOL } from '@windlass/shared/wire/agent.ts'

/** Puts the agent of this service in the place of the one that is installed on a machine; its settings and identity stay. */
export function upgradeCommand(baseUrl: string): string {
  return `curl -fsSL ${baseUrl}/install.sh | sh -s -- --upgrade`
}

/** What an agent is told whose protocol is not spoken here; undefined for one that is served. */
export function misfit(protocol: number, baseUrl: string): string | undefined {
  if (protocol >= OLDEST_PROTOCOL && protocol <= PROTOCOL) return undefined
  const served = OLDEST_PROTOCOL < PROTOCOL ? `${PROTOCOL} and ${OLDEST_PROTOCOL}` : PROTOCOL
  const spoken = `This coordinator speaks protocol ${served}, the agent ${protocol}.`
  const command = upgradeCommand(baseUrl)
  return protocol > PROTOCOL
    ? `${spoken} Upgrade the coordinator first, or go back to the agent of its version on the agent's machine: ${command}`
    : `${spoken} Upgrade the agent; run this on its machine: ${command}`
}
