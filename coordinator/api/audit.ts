import { listAudit } from '../audit/read.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type AuditNeeds = Needs<typeof listAudit>

export const audit = (deps: AuditNeeds): HandlersFor<'audit'> => ({
  list: async ({ input, caller }) => {
    const { org: _, limit, cursor, ...filter } = input
    const before = decodeCursor(cursor, /^aud_[0-9a-z]{26}$/)
    const { entries, fitting } = await listAudit(deps, caller, { ...filter, before, limit })
    const { rows, nextCursor } = pageOf(entries, fitting, (entry) => entry.id)
    return { auditEntries: rows, nextCursor }
  },
})
