import { z } from 'zod'
import { OrgId, Slug } from '../ids.ts'
import { Role, Scope } from '../scopes.ts'

export const Org = z.object({ id: OrgId, slug: Slug, name: z.string(), createdAt: z.int() }).meta({ id: 'Org' })
export type Org = z.output<typeof Org>

/** What a request is made with, and what that allows. */
export const Credential = z
  .object({
    kind: z.enum(['key', 'session']),
    id: z.string(),
    name: z.string(),
    role: Role,
    scopes: z.array(Scope).meta({ description: 'Empty: everything that the role may do.' }),
  })
  .meta({ id: 'Credential' })
export type Credential = z.output<typeof Credential>
