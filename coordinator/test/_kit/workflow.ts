import { createHash } from 'node:crypto'
import { newId, type OrgId, type VersionId, type WorkflowId } from '@windlass/shared/ids.ts'
import { Descriptor } from '@windlass/shared/model/descriptor.ts'
import { contentKey } from '../../objects/key.ts'
import { makeCurrent } from '../../workflows/lifecycle.ts'
import * as store from '../../workflows/store.ts'
import type { TestCoordinator } from './coordinator.ts'

export interface WorkflowAsk {
  slug?: string
  orgId?: OrgId
  /** What stands in `workflow.jsonc` beside the slug. */
  descriptor?: Record<string, unknown>
  inputSchema?: store.JsonSchema
  outputSchema?: store.JsonSchema
  /** Text in place of a real bundle. */
  bundle?: string
}

export interface TestWorkflow {
  id: WorkflowId
  slug: string
  digest: string
}

let made = 0

/** A deployed workflow, without the seconds that compiling one takes: nothing of it is ever executed here. */
export async function aWorkflow(
  c: Pick<TestCoordinator, 'deps' | 'orgId'>,
  ask: WorkflowAsk = {},
): Promise<TestWorkflow> {
  const slug = ask.slug ?? `workflow-${++made}`
  const workflow = { id: newId('wf'), orgId: ask.orgId ?? c.orgId, slug, name: slug, description: '' }
  await c.deps.db.begin(async (tx) => void (await store.insert(tx, workflow)))
  const { digest } = await insertVersion(c, { ...ask, slug, workflowId: workflow.id, version: 1 })
  await becomeCurrent(c, { ...ask, slug, workflowId: workflow.id, version: 1 })
  c.deps.targets.forget(workflow.orgId)
  return { id: workflow.id, slug, digest }
}

/** The next version of a workflow, made current. */
export async function aVersion(
  c: Pick<TestCoordinator, 'deps' | 'orgId'>,
  workflow: TestWorkflow,
  ask: WorkflowAsk = {},
): Promise<number> {
  const { id: workflowId, slug } = workflow
  const version = await c.deps.db.begin((tx) => store.nextVersion(tx, c.orgId, workflowId))
  await insertVersion(c, { ...ask, slug, workflowId, version })
  await becomeCurrent(c, { ...ask, slug, workflowId, version })
  c.deps.targets.forget(c.orgId)
  return version
}

async function becomeCurrent(c: Pick<TestCoordinator, 'deps' | 'orgId'>, ask: VersionAsk): Promise<void> {
  const { orgId = c.orgId, workflowId, version } = ask
  const descriptor = Descriptor.parse({ slug: ask.slug, ...ask.descriptor })
  await c.deps.db.begin((tx) => makeCurrent(tx, { orgId, workflowId, version, descriptor }))
}

type VersionAsk = WorkflowAsk & { slug: string; workflowId: WorkflowId; version: number }

async function insertVersion(
  c: Pick<TestCoordinator, 'deps' | 'orgId'>,
  ask: VersionAsk,
): Promise<{ id: VersionId; digest: string }> {
  const bytes = Buffer.from(ask.bundle ?? `bundle of ${ask.slug} ${ask.version}`)
  const digest = createHash('sha256').update(bytes).digest('hex')
  await c.deps.objects.put(contentKey(digest), bytes)
  const version: store.NewVersion = {
    id: newId('ver'),
    orgId: ask.orgId ?? c.orgId,
    workflowId: ask.workflowId,
    version: ask.version,
    descriptor: Descriptor.parse({ slug: ask.slug, ...ask.descriptor }),
    inputSchema: ask.inputSchema ?? {},
    outputSchema: ask.outputSchema ?? {},
    warnings: [],
    bundleDigest: digest,
    bundleBytes: bytes.byteLength,
    sourceDigest: digest,
    createdBy: 'test',
  }
  await c.deps.db.begin((tx) => store.insertVersion(tx, version))
  return { id: version.id, digest }
}

export interface CopiesAsk {
  count: number
  inputSchema?: store.JsonSchema
}

/** So many further versions of a workflow, as its first, without the time that as many deploys take. */
export async function copiesOf(
  { db }: Pick<TestCoordinator, 'db'>,
  { id }: Pick<TestWorkflow, 'id'>,
  { count, inputSchema }: CopiesAsk,
): Promise<VersionId[]> {
  const ids = Array.from({ length: count }, () => newId('ver'))
  const schema = inputSchema === undefined ? null : JSON.stringify(inputSchema)
  await db`
    insert into workflow_versions (id, org_id, workflow_id, version, descriptor, input_schema, output_schema,
                                   bundle_digest, bundle_bytes, source_digest, created_by)
    select n.id, v.org_id, v.workflow_id, n.version + 1, v.descriptor, coalesce(${schema}::text::json, v.input_schema),
           v.output_schema, v.bundle_digest, v.bundle_bytes, v.source_digest, v.created_by
    from workflow_versions v
    cross join unnest(${ids}::text[]) with ordinality as n (id, version)
    where v.workflow_id = ${id} and v.version = 1`
  return ids
}

/** For versions that nobody can read whole: those fail who try it. */
export async function spoilSchemas({ db }: Pick<TestCoordinator, 'db'>, ids: readonly VersionId[]): Promise<void> {
  await db`update workflow_versions set input_schema = 'null' where id = any(${[...ids]})`
}
