import type { Run } from '@windlass/shared/model/run.ts'
import { EXIT } from './exit-codes.ts'
import { Failure } from './failure.ts'
import type { Session } from './session.ts'
import { note } from './terminal.ts'

/** The run of this id, or the newest one of the workflow of this name. */
export async function runOf({ client, isJson }: Session, given: string): Promise<Run> {
  if (given.startsWith('run_')) return (await client.runs.get({ run: given })).run
  const [newest] = (await client.runs.list({ workflow: given, limit: 1 })).runs
  if (!newest)
    throw new Failure(
      `\`${given}\` has no run.`,
      `windlass run ${given}, or windlass runs list`,
      EXIT.refused,
      'NOT_FOUND',
    )
  if (!isJson) note(`${newest.id} of ${newest.workflow.slug}, version ${newest.workflow.version}`)
  return newest
}
