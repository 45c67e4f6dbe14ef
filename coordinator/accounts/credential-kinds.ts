import type { Log } from '@windlass/shared/log.ts'
import type { Sql } from '../db/client.ts'
import type { CredentialKind } from './credential-kind.ts'
import { keyKind } from './key-kind.ts'
import { sessionKind } from './session-kind.ts'

/** All credentials of callers. Who claims a text first reads it. */
export function credentialKinds(deps: { db: Sql; log: Log }): readonly CredentialKind[] {
  return [keyKind(deps), sessionKind(deps)]
}
