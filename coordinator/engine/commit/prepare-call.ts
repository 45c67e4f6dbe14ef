import { Fault } from '@windlass/shared/errors.ts'
import { type OrgId, type RunId, Slug } from '@windlass/shared/ids.ts'
import type { Ask, EntryIdentity, JournalError } from '@windlass/shared/wire/journal.ts'
import type { Payer } from '../../judging/judge.ts'
import { noCredential } from '../../stay.ts'
import { type PrepareDeps, prepareRun, type TriggerAsk } from './trigger.ts'
import { mayStart } from './may-start.ts'
import { type JournalCommand, type PreparedCall, refusal } from '../rules/journal-command.ts'

type Call = Extract<Ask, { for: 'child' }>

/** The run whose program calls, and pays for what is judged. */
export interface CallingRun {
  orgId: OrgId
  runId: RunId
  payer: Payer
}

/**
 * The child run about to be created, or why the call is refused. What it takes from its parent is filled in under the
 * lock. Rejects with `NotHeld` before it looks anything up for a runner that does not hold the run: an agent may invent
 * runs, and each of their calls may name what is not there.
 */
export async function prepareCall(
  deps: PrepareDeps,
  { orgId, runId, payer }: CallingRun,
  entry: EntryIdentity,
  call: Call,
): Promise<{ child: PreparedCall } | { refused: JournalError }> {
  await payer.assertHeld()
  const { environment } = call
  if (environment && !Slug.safeParse(environment).success)
    return {
      refused: refusal(`environment: \`${environment}\` is no name of an environment.`, { path: 'environment' }),
    }
  const ask: TriggerAsk = {
    workflow: call.workflow,
    ...(call.version !== null && { version: call.version }),
    input: JSON.parse(call.inputText) as unknown,
    ...(environment !== undefined && { environment }),
    tags: call.tags,
    priority: call.priority,
    trigger: { kind: 'child', id: runId },
    parent: { runId, entry: entry.n, rootRunId: runId, depth: 0 },
  }
  try {
    const { run } = await prepareRun(deps, { orgId, actor: null, payer, ...noCredential }, ask)
    return { child: { run, inherits: environment === undefined } }
  } catch (error) {
    return refusedBy(error)
  }
}

/** The same call after a wait, in which its workflow may have been disabled or deleted. */
export async function prepareCallAgain(
  deps: PrepareDeps,
  orgId: OrgId,
  { child, ...command }: JournalCommand,
): Promise<JournalCommand> {
  if (!child) return command
  try {
    await mayStart(deps, orgId, { workflow: child.run.workflowId })
    return { ...command, child }
  } catch (error) {
    return { ...command, ...refusedBy(error) }
  }
}

function refusedBy(error: unknown): { refused: JournalError } {
  // Nothing can be found out now: the agent comes again with it.
  if (!(error instanceof Fault) || error.code === 'UNAVAILABLE') throw error
  return { refused: refusal(error.message, { ...error.detail, code: error.code }) }
}
