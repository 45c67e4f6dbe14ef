import { z } from 'zod'
import { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import { CAPABILITIES, type AgentFacts, type Instance } from '@windlass/shared/wire/agent.ts'

// What comes once in a connection, or seldom, is judged by schemas. No column takes U+0000.
const Text = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((text) => !text.includes('\0'))

const InstanceFrame = z.object({
  id: Text(64),
  previous: z.array(Text(64)).max(2),
  host: Text(128),
  boot: z
    .string()
    .max(128)
    .regex(/^[^\0]*$/),
}) satisfies z.ZodType<Instance>

const FactsFrame = z.object({
  labels: z.array(Text(64)).max(50),
  platform: Text(64),
  /** Agents may be newer than we are. */
  capabilities: z.array(Text(64)).max(4 * CAPABILITIES.length),
  isolation: EffectiveIsolation.nullable(),
  unready: z.array(z.object({ check: Text(64), message: Text(1000) })).max(20),
}) satisfies z.ZodType<AgentFacts>

const isOr = (schema: z.ZodType) => (value: unknown) => value === undefined || schema.safeParse(value).success

/** Each of these is missing where there is nothing to say. */
export const isInstance = isOr(InstanceFrame)
export const isFacts = isOr(FactsFrame)
export const isIsolation = isOr(EffectiveIsolation)
