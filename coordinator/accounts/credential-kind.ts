import type { Caller } from '../actor.ts'
import type { Tx } from '../db/client.ts'

/** One kind of credential of callers. */
export interface CredentialKind {
  readonly of: Caller['kind']
  /** Whether a text claims to be of this kind; then no other kind is asked. */
  claims(token: string): boolean
  /** What is wrong with its form, in a sentence. Told without asking the database. */
  flaw(token: string): string | undefined
  /** Who holds it. Throws UNAUTHENTICATED, with the way out. */
  find(token: string): Promise<Caller>
  /** Its revocation waits for the transaction. Throws UNAUTHENTICATED when it serves no more. */
  hold(tx: Tx, id: string): Promise<void>
}
