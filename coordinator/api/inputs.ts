import { getInput, listInputs } from '../inputs/read.ts'
import { respondToInput } from '../inputs/respond.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type InputsNeeds = Needs<typeof getInput | typeof listInputs | typeof respondToInput>

export const inputs = (deps: InputsNeeds): HandlersFor<'inputs'> => ({
  list: async ({ input, caller }) => {
    const before = decodeCursor(input.cursor, /^inp_[0-9a-z]{26}$/)
    const filter = { orgId: caller.orgId, status: input.status, runId: input.run, before, limit: input.limit }
    const { inputs: found, fitting } = await listInputs(deps, filter)
    const { rows, nextCursor } = pageOf(found, fitting, (row) => row.id)
    return { inputs: rows, nextCursor }
  },

  get: async ({ input, caller }) => ({ input: await getInput(deps, caller, input.input) }),

  respond: async (call) => ({
    input: await respondToInput(deps, call, call.input.input, call.input.answer),
  }),
})
