import type { Revocable } from './actor.ts'

/** After a wait of more than this a credential is looked at again, and what else may have changed meanwhile. */
const AGAIN_MS = 1000

/** Whether what was looked at then is to be looked at again. `since`: by `performance.now()`. */
export const isLongAgo = (since: number): boolean => performance.now() - since > AGAIN_MS

/** For what no credential asks for, or none that could be lost before it is looked at. */
export const noCredential: Revocable = { stay: () => Promise.resolve() }
