import type { Author } from '../audit/row.ts'
import { cancelJobsOf } from '../bulk/read.ts'
import type { Tx } from '../db/client.ts'
import { revokeTokensOf } from '../runners/tokens.ts'

/** Numbers of what a key or a session has made and that ends when it is revoked. */
export interface EndedWith {
  registrationTokens: number
  /** Bulk cancels and bulk retries. */
  jobs: number
}

export const NOTHING: EndedWith = { registrationTokens: 0, jobs: 0 }

/** Ends what a credential that is being revoked could otherwise still do. */
export async function endWith(tx: Tx, by: Author, id: string): Promise<EndedWith> {
  const registrationTokens = await revokeTokensOf(tx, id)
  return { registrationTokens, jobs: await cancelJobsOf(tx, by, id) }
}
