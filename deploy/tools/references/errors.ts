import { faultsOf } from '@windlass/coordinator/api/faults-of.ts'
import { FAULTS, type FaultCode, RUN_ERRORS } from '@windlass/shared/errors.ts'
import { isDocumented } from '@windlass/shared/ops/words.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import { code, fence, headed, table } from './markdown.ts'

const ABOUT = `Every answer outside 2xx and 304 has one form. \`code\` is stable and never reused; \`message\` is for people and may change;
\`detail\` depends on the code, and \`detail.path\` names the offending field. The header \`X-Request-Id\` finds the request in the
coordinator's log.`

const ENVELOPE = `{ "error": { "code": "NOT_FOUND", "message": "There is nothing here under this name.", "detail": { "run": "run_…" } } }`

const OF_RUNS = `A run that has failed says why in \`error.code\`. A program may throw an error with a \`code\` of its own, which then stands there.`

export function errorsReference(): string {
  const faults = Object.entries(FAULTS).map(([name, [status, sentence]]) => [
    code(name),
    String(status),
    sentence,
    answeredBy(name as FaultCode),
  ])
  const ofRuns = Object.entries(RUN_ERRORS).map(([name, sentence]) => [code(name), sentence])
  return headed(
    'Errors',
    ABOUT,
    fence('json', ENVELOPE),
    '## Of requests',
    table(['code', 'status', 'what it says', 'who answers it'], faults),
    '## Of runs',
    OF_RUNS,
    table(['code', 'what it says'], ofRuns),
  )
}

const MOST_NAMED = 6

function answeredBy(name: FaultCode): string {
  const rows = allOps.filter(isDocumented)
  const ids = rows.filter((row) => faultsOf(row).has(name)).map(({ id }) => id)
  if (ids.length === rows.length) return 'every operation'
  if (ids.length === 0) return 'none: it is for agents and programs'
  return ids.length > MOST_NAMED ? `${ids.length} operations` : ids.join(', ')
}
