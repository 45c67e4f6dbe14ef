import { Fault } from '@windlass/shared/errors.ts'
import { type OrgId, type RunId, Slug } from '@windlass/shared/ids.ts'
import type { Ask, EntryIdentity, JournalError } from '@windlass/shared/wire/journal.ts'
import type { Deps } from '../deps.ts'
import { prepareRun } from '../runs/trigger.ts'
import type { NewRun } from '../runs/store-new.ts'

type Call = Extract<Ask, { for: 'child' }>

/** The child run about to be created, or why the call is refused. What it takes from its parent is filled in under the lock. */
export async function prepareCall(
  deps: Pick<Deps, 'targets'>,
  from: { orgId: OrgId; runId: RunId },
  entry: EntryIdentity,
  call: Call,
): Promise<{ child: { run: NewRun; inherits: boolean } } | { refused: JournalError }> {
  const { environment } = call
  if (environment && !Slug.safeParse(environment).success)
    return {
      refused: refusal(`environment: \`${environment}\` is no name of an environment.`, { path: 'environment' }),
    }
  try {
    const { run } = await prepareRun(
      deps,
      { orgId: from.orgId, actor: null },
      {
        workflow: call.workflow,
        ...(call.version !== null && { version: call.version }),
        input: JSON.parse(call.inputText) as unknown,
        ...(call.environment !== undefined && { environment: call.environment }),
        tags: call.tags,
        priority: call.priority,
        trigger: { kind: 'child', id: from.runId },
        parent: { runId: from.runId, entry: entry.n, rootRunId: from.runId, depth: 0 },
      },
    )
    return { child: { run, inherits: call.environment === undefined } }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { refused: refusal(error.message, { ...error.detail, code: error.code }) }
  }
}

export function refusal(message: string, detail: Record<string, unknown>): JournalError {
  return { name: 'CallRefusedError', code: 'CALL_REFUSED', message, detail }
}
