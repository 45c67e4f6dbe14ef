import { z } from 'zod'
import { PoolId, RegistrationTokenId, Slug } from '../ids.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** A token by which agents join a pool, without the token itself, which is shown once and kept nowhere. */
export const RegistrationToken = z
  .object({
    id: RegistrationTokenId,
    pool: z.object({ id: PoolId, name: Slug }),
    usesLeft: z.int().meta({ description: 'How many more agents it lets in.' }),
    createdAt: At,
    createdBy: z.string().meta({ description: 'Id of the key or session that made it; it ends when that is revoked.' }),
    expiresAt: At,
  })
  .meta({ id: 'RegistrationToken' })
export type RegistrationToken = z.output<typeof RegistrationToken>
