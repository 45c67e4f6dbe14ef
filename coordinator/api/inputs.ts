import { getInput, listInputs } from '../inputs/read.ts'
import { respondToInput } from '../inputs/respond.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'

export const inputs: HandlersFor<'inputs'> = {
  list: async ({ input, caller, deps }) => {
    const before = decodeCursor(input.cursor, /^inp_[0-9a-z]{26}$/)
    const filter = { orgId: caller.orgId, status: input.status, runId: input.run, before, limit: input.limit + 1 }
    const { rows, nextCursor } = pageOf(await listInputs(deps, filter), input.limit, (row) => row.id)
    return { inputs: rows, nextCursor }
  },

  get: async ({ input, caller, deps }) => ({ input: await getInput(deps, caller, input.input) }),

  respond: async ({ input, caller, deps }) => ({
    input: await respondToInput(deps, caller, input.input, input.answer),
  }),
}
