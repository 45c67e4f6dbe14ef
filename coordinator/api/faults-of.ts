import type { FaultCode } from '@windlass/shared/errors.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { pathNames, restRidesIn } from '@windlass/shared/ops/place.ts'

/** Faults that any row may answer, whatever it declares. */
const COMMON: readonly FaultCode[] = [
  'VALIDATION_FAILED',
  'METHOD_NOT_ALLOWED',
  'RATE_LIMITED',
  'INTERNAL',
  'UNAVAILABLE',
]
const WITH_BODY: readonly FaultCode[] = ['PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE']

/** What a row may answer besides success: what it declares, and what its door and its shape bring along. */
export function faultsOf(row: AnyOp): Set<FaultCode> {
  const faults = new Set<FaultCode>([...row.faults, ...COMMON])
  if (row.door !== 'public') faults.add('UNAUTHENTICATED')
  if (row.door === 'caller') faults.add('FORBIDDEN')
  const names = pathNames(row.path)
  if (names.includes('org') || (row.door === 'program' && names.includes('run'))) faults.add('NOT_FOUND')
  if (restRidesIn(row) === 'body') for (const code of WITH_BODY) faults.add(code)
  return faults
}
