import type { OrgId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { Db } from '../db/client.ts'
import { namesWithout } from './connections.ts'

/** What a descriptor says of deliveries that comes to nothing as things stand now. */
export async function inboundWarnings(
  deps: { db: Db; config: { baseUrl: string | undefined } },
  orgId: OrgId,
  { webhook, connections }: Pick<Descriptor, 'webhook' | 'connections'>,
): Promise<string[]> {
  const names = [...new Set(connections.map(({ connection }) => connection))]
  const missing = await namesWithout(deps, orgId, names)
  const warnings = missing.map((name) => `\`connections\`: this org has no connection \`${name}\`; ${AS_SOON}`)
  if ((webhook !== null || names.length > 0) && deps.config.baseUrl === undefined) warnings.push(NO_BASE)
  return warnings
}

const AS_SOON = 'as soon as one of this name is made, its deliveries start runs'
const NO_BASE =
  'the setting WINDLASS_BASE_URL of the coordinator is not set: the address of a webhook or connection is shown ' +
  'as you reach it, and others may not'
