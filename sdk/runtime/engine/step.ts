import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { Scope } from './call.ts'
import { encodeResult, errorOf } from './codec.ts'
import type { Scopes } from './scopes.ts'

export type Outcome = Pick<Completion, 'state' | 'result'>

/**
 * Executes the function of a step. Whatever comes of it is a value, as it goes into the journal; `threw` hears of an
 * error before.
 */
export async function executeStep(
  scopes: Scopes,
  scope: Scope,
  { act, threw }: { act: () => unknown; threw: (error: unknown) => void },
): Promise<Outcome> {
  try {
    return { state: 'done', result: encodeResult(scope.call.name, await scopes.run(scope, act)) }
  } catch (error) {
    threw(error)
    return { state: 'failed', result: failureText(error) }
  }
}

function failureText(thrown: unknown): string {
  try {
    return JSON.stringify(errorOf(thrown))
  } catch {
    return JSON.stringify({ name: 'Error', message: 'Something was thrown that cannot be read.' })
  }
}
