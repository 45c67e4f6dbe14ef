import type { Acting } from '../actor.ts'
import type { Author } from '../audit/record.ts'

/** Somebody on the coordinator's host, who needs no credential of ours and belongs to no org. */
export type Operator = Omit<Exclude<Author, Acting>, 'orgId'>
