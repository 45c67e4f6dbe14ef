import { OLDEST_PROTOCOL, PROTOCOL, protocolOf } from '@windlass/shared/wire/agent.ts'

/** Puts the agent of this service in the place of the one that is installed on a machine; its settings and identity stay. */
export function upgradeCommand(baseUrl: string): string {
  return `curl -fsSL ${baseUrl}/install.sh | sh -s -- --upgrade`
}

/** What an agent is told whose protocol is not spoken here; undefined for one that is served. Previews say a number. */
export function misfit(said: string | number, baseUrl: string): string | undefined {
  const protocol = protocolOf(said)
  if (protocol !== undefined && protocol >= OLDEST_PROTOCOL && protocol <= PROTOCOL) return undefined
  const served = OLDEST_PROTOCOL < PROTOCOL ? `windlass/${PROTOCOL} to ${OLDEST_PROTOCOL}` : `windlass/${PROTOCOL}`
  const its = protocol === undefined ? `protocol ${said} of a preview` : said
  const spoken = `This coordinator speaks ${served}, the agent ${its}.`
  const command = upgradeCommand(baseUrl)
  return protocol !== undefined && protocol > PROTOCOL
    ? `${spoken} Upgrade the coordinator first, or go back to the agent of its version on the agent's machine: ${command}`
    : `${spoken} Upgrade the agent; run this on its machine: ${command}`
}
