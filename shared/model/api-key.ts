import { z } from 'zod'
import { KeyId, Slug } from '../ids.ts'
import { Role, Scope } from '../scopes.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** A key without its secret part, which is shown once and kept nowhere. */
export const ApiKey = z
  .object({
    id: KeyId,
    org: Slug,
    name: z.string(),
    prefix: z.string().meta({ description: 'The first 10 characters of the key.' }),
    role: Role,
    scopes: z.array(Scope).meta({ description: 'Empty: everything that the role may do. Otherwise exactly these.' }),
    createdAt: At,
    createdBy: z.string().nullable().meta({ description: 'Id of the credential that made it, or of the operator.' }),
    expiresAt: At.nullable(),
    lastUsedAt: At.nullable().meta({ description: 'To the minute.' }),
    revokedAt: At.nullable(),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.output<typeof ApiKey>
