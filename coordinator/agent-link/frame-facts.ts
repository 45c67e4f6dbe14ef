import { z } from 'zod'
import { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import { CAPABILITIES, type AgentFacts, type Instance } from '@windlass/shared/wire/agent.ts'

const MOST_PREVIOUS = 2
const MOST_LABELS = 50
/** Agents may be newer than we are. */
const MOST_CAPABILITIES = 4 * CAPABILITIES.length
const MOST_UNREADY = 20

// What comes once in a connection, or seldom, is judged by schemas. No column takes U+0000.
const Text = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => !text.includes('\0'))

const InstanceFrame = z.object({
  id: Text(64),
  previous: z.array(Text(64)).max(MOST_PREVIOUS),
  host: Text(128),
  boot: z
    .string()
    .max(128)
    .regex(/^[^\0]*$/),
  process: Text(64).optional(),
  folder: Text(128).optional(),
  cluster: Text(64).optional(),
}) satisfies z.ZodType<Instance>

const FactsFrame = z.object({
  labels: z.array(Text(64)).max(MOST_LABELS),
  platform: Text(64),
  capabilities: z.array(Text(64)).max(MOST_CAPABILITIES),
  isolation: EffectiveIsolation.nullable(),
  unready: z.array(z.object({ check: Text(64), message: Text(1000) })).max(MOST_UNREADY),
}) satisfies z.ZodType<AgentFacts>

/** Schemas look at each element, and write down what is wrong with it, before they look at how many there are. */
function hasNoMore(value: unknown, most: Record<string, number>): boolean {
  const lists = value as Record<string, unknown> | null | undefined
  return Object.entries(most).every(([key, length]) => {
    const list = lists?.[key]
    return !Array.isArray(list) || list.length <= length
  })
}

const isOr =
  (schema: z.ZodType, most: Record<string, number> = {}) =>
  (value: unknown) =>
    value === undefined || (hasNoMore(value, most) && schema.safeParse(value).success)

/** Each of these is missing where there is nothing to say. */
export const isInstance = isOr(InstanceFrame, { previous: MOST_PREVIOUS })
export const isFacts = isOr(FactsFrame, {
  labels: MOST_LABELS,
  capabilities: MOST_CAPABILITIES,
  unready: MOST_UNREADY,
})
export const isIsolation = isOr(EffectiveIsolation)
