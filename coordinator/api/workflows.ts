import { ops } from '@windlass/shared/ops/index.ts'
import { authorize } from '../accounts/authorize.ts'
import { decodeCursor, pageOf } from './page.ts'
import { disableWorkflow, enableWorkflow } from '../workflows/disable.ts'
import { deleteWorkflow, restoreWorkflow } from '../workflows/delete.ts'
import { promoteVersion } from '../workflows/promote.ts'
import { createVersion, createWorkflow, type Deployed, updateWorkflow } from '../workflows/deploy.ts'
import {
  getVersion,
  getWorkflow,
  listVersions,
  listWorkflows,
  missingFile,
  presentVersion,
  presentWorkflow,
  sourceOf,
} from '../workflows/read.ts'
import { partIn, stretchFor } from './part.ts'
import { FilesAnswer, type HandlersFor } from './call.ts'
import type { Needs } from '@windlass/shared/needs.ts'

const present = ({ workflow, version }: Deployed) => ({
  workflow: presentWorkflow(workflow),
  version: presentVersion(version),
})

type WorkflowsNeeds = Needs<
  | typeof createVersion
  | typeof createWorkflow
  | typeof deleteWorkflow
  | typeof disableWorkflow
  | typeof enableWorkflow
  | typeof getVersion
  | typeof getWorkflow
  | typeof listVersions
  | typeof listWorkflows
  | typeof promoteVersion
  | typeof restoreWorkflow
  | typeof sourceOf
  | typeof updateWorkflow
>

export const workflows = (deps: WorkflowsNeeds): HandlersFor<'workflows'> => ({
  list: async ({ input, caller }) => {
    const before = decodeCursor(input.cursor, /^wf_[0-9a-z]{26}$/)
    // Whoever may restore a workflow sees those that can be restored.
    if (input.deleted) authorize(ops.workflows.restore, caller)
    const found = await listWorkflows(deps, caller.orgId, { deleted: input.deleted, before, limit: input.limit + 1 })
    const { rows, nextCursor } = pageOf(found, input.limit, (workflow) => workflow.id)
    return { workflows: rows, nextCursor }
  },

  create: async (call) => present(await createWorkflow(deps, call, call.input.files)),

  get: async ({ input, caller }) => {
    const { source, ...head } = await getWorkflow(deps, caller.orgId, input.workflow)
    return new FilesAnswer(head, source)
  },

  file: async ({ input, caller }) => {
    const { workflow, path, offset } = input
    const { version, source } = await sourceOf(deps, caller.orgId, workflow, input.version)
    const { from, most } = stretchFor(offset)
    const found = await source.read(path, most, from)
    if (!found) throw await missingFile(source, workflow, path)
    const { text, part } = partIn({ ...found, from }, offset)
    return { file: { path, content: text }, version, part }
  },

  update: async (call) => present(await updateWorkflow(deps, call, call.input.workflow, call.input)),

  delete: async ({ input, caller }) => {
    await deleteWorkflow(deps, caller, input.workflow, input.runs)
    return {}
  },

  restore: async ({ input, caller }) => ({
    workflow: await restoreWorkflow(deps, caller, input.workflow, input.slug),
  }),

  disable: async ({ input, caller }) => ({ workflow: await disableWorkflow(deps, caller, input.workflow) }),

  enable: async ({ input, caller }) => ({ workflow: await enableWorkflow(deps, caller, input.workflow) }),

  listVersions: async ({ input, caller }) => {
    const before = decodeCursor(input.cursor, /^[0-9]{1,9}$/)
    const page = { before: before === undefined ? undefined : Number(before), limit: input.limit }
    const { versions, fitting } = await listVersions(deps, caller.orgId, input.workflow, page)
    const { rows, nextCursor } = pageOf(versions, fitting, (version) => version.version)
    return { versions: rows, nextCursor }
  },

  createVersion: async (call) => ({
    version: presentVersion(await createVersion(deps, call, call.input.workflow, call.input)),
  }),

  promote: async ({ input, caller }) => ({
    workflow: await promoteVersion(deps, caller, input.workflow, input.version),
  }),

  getVersion: async ({ input, caller }) => {
    const { source, ...head } = await getVersion(deps, caller.orgId, input.workflow, input.version)
    return new FilesAnswer(head, source)
  },
})
