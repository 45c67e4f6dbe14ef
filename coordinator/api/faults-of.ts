import type { FaultCode } from '@windlass/shared/errors.ts'
import { type AnyOp, isForCallers, isPublic } from '@windlass/shared/ops/op.ts'
import { pathNames, restRidesIn } from '@windlass/shared/ops/fill-route.ts'

/** Faults that any row may answer, whatever it declares. */
const COMMON: readonly FaultCode[] = ['VALIDATION_FAILED', 'METHOD_NOT_ALLOWED', 'INTERNAL', 'UNAVAILABLE']
// An org that is not the caller's looks absent, whether the path names it or a header does.
const FOR_CALLERS: readonly FaultCode[] = ['FORBIDDEN', 'NOT_FOUND', 'RATE_LIMITED']
const WITH_BODY: readonly FaultCode[] = ['PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE']

/** What a row may answer besides success: what it declares, and what its credentials and its shape bring along. */
export function faultsOf(row: AnyOp): Set<FaultCode> {
  const faults = new Set<FaultCode>([...row.faults, ...COMMON])
  if (!isPublic(row)) faults.add('UNAUTHENTICATED')
  // Where a credential is looked up, an address that has shown too many wrong ones has to wait.
  if (row.credentials.includes('runner') || row.faults.includes('UNAUTHENTICATED')) faults.add('RATE_LIMITED')
  // A run may ask so often.
  if (row.credentials.includes('run')) faults.add('RATE_LIMITED')
  if (isForCallers(row)) for (const code of FOR_CALLERS) faults.add(code)
  if (pathNames(row.path).length > 0) faults.add('NOT_FOUND')
  if (restRidesIn(row) === 'body') for (const code of WITH_BODY) faults.add(code)
  return faults
}
