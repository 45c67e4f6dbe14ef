import type { Run } from '@windlass/shared/model/run.ts'
import type { Workflow } from '@windlass/shared/model/workflow.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Asking } from './asking.ts'
import { type Fields, invoke, invokeForFiles, mayCall } from './invoke.ts'
import { RUN_EVENTS, WORKFLOW_FILE } from './resources.ts'
import type { PlanOf } from './table.ts'

export interface CompletionAsk {
  uri: string
  argument: string
  /** What has been typed so far. */
  value: string
  /** Arguments of the template that are known already. */
  known: Readonly<Record<string, string>>
}

/** The protocol takes so many. */
const MOST = 100

/** Values of the variables in our templates: what the caller may see and what begins as he typed. */
export async function complete(planOf: PlanOf, asking: Asking, ask: CompletionAsk): Promise<string[]> {
  const candidates = await candidatesFor(planOf, asking, ask)
  return candidates.filter((each) => each.startsWith(ask.value)).slice(0, MOST)
}

async function candidatesFor(
  planOf: PlanOf,
  asking: Asking,
  { uri, argument, known }: CompletionAsk,
): Promise<readonly string[]> {
  const read = async (plan: ReturnType<PlanOf>, fields: Fields) =>
    mayCall(plan, asking) ? await invoke(plan, asking, fields) : {}
  if (uri === RUN_EVENTS && argument === 'run') {
    const { runs = [] } = (await read(planOf(ops.runs.list), { limit: MOST })) as { runs?: Run[] }
    return runs.map(({ id }) => id)
  }
  if (uri !== WORKFLOW_FILE) return []
  if (argument === 'workflow') {
    const { workflows = [] } = (await read(planOf(ops.workflows.list), { limit: MOST })) as { workflows?: Workflow[] }
    return workflows.map(({ slug }) => slug)
  }
  const { workflow } = known
  if (argument !== 'path' || workflow === undefined) return []
  const plan = planOf(ops.workflows.get)
  if (!mayCall(plan, asking)) return []
  return (await invokeForFiles(plan, asking, { workflow })).paths()
}
