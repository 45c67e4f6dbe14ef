import type { Log } from '@windlass/shared/log.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId, type WorkflowId, type WorkflowRef } from '@windlass/shared/ids.ts'
import { DESCRIPTOR_FILE } from '@windlass/shared/model/descriptor.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import type { BytesInFlight } from '../limits/bytes-in-flight.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Judge } from '../judging/judge.ts'
import type { ObjectStore } from '../objects/store.ts'
import type { Sources } from './sources.ts'
import { targetsChanged, type TargetsChange } from './targets.ts'
import type { BuiltWorkflow, WorkflowBuilder } from './build.ts'
import type { Acting, LongCall } from '../actor.ts'
import { record } from '../audit/record.ts'
import { inboundWarnings } from '../inbound/warnings.ts'
import { contentKey } from '../objects/key.ts'
import { assertBase, filesAfter, type Update } from './changes.ts'
import { DeployError, type DeployProblem, faultOf } from './deploy-error.ts'
import { makeCurrent } from './lifecycle.ts'
import { needWorkflow } from './read.ts'
import * as store from './store.ts'
import { trySchemas } from './try-schemas.ts'

type DeployDeps = TargetsChange & {
  db: Db
  objects: ObjectStore
  builder: WorkflowBuilder
  judge: Judge
  log: Log
  config: { baseUrl: string | undefined }
}
type UpdateDeps = DeployDeps & { sources: Sources; bodies: BytesInFlight }
export interface Deployed {
  workflow: store.WorkflowRow
  version: store.VersionRow
}

/** Deploys a workflow that the org does not have yet. */
export async function createWorkflow(deps: DeployDeps, call: LongCall, files: SourceFile[]): Promise<Deployed> {
  const { caller } = call
  const built = await build(deps, call, files, { files })
  const { slug, name, description } = built.descriptor
  const id = newId('wf')
  await deps.db.begin(async (tx) => {
    const isNew = await store.insert(tx, { id, orgId: caller.orgId, slug, name, description })
    if (!isNew)
      throw new Fault(
        'WORKFLOW_EXISTS',
        { path: 'slug', slug },
        `This org has a workflow \`${slug}\` already; update it instead.`,
      )
    await store.insertVersion(tx, { ...versionOf(caller, built), workflowId: id, version: 1 })
    await makeCurrent(tx, { orgId: caller.orgId, workflowId: id, version: 1, descriptor: built.descriptor })
    const target = { type: 'workflow', id, name: slug }
    await record(tx, caller, { action: 'workflows.create', target, after: facts(1, name, built.bundle.digest) })
  })
  return deployed(deps, caller, id, 1)
}

/** Deploys a new version of a workflow and makes it current. Runs that exist keep theirs. */
export async function updateWorkflow(
  deps: UpdateDeps,
  call: LongCall,
  ref: WorkflowRef,
  update: Update,
): Promise<Deployed> {
  const { caller } = call
  const { id, base } = await baseOf(deps, caller.orgId, ref, undefined)
  assertBase(update, base)
  const built = await buildUpdate(deps, call, base, update)
  const version = await deps.db.begin(async (tx) => {
    const workflow = await lockFor(tx, caller.orgId, ref, built)
    assertBase(update, workflow)
    // Read behind the lock: the version that another deploy has just made current counts as what was there before.
    const before = (await store.findVersion(tx, caller.orgId, workflow.id, workflow.version))!
    const version = await addVersion(tx, caller, workflow, built)
    const { descriptor } = built
    await makeCurrent(tx, { orgId: caller.orgId, workflowId: workflow.id, version, descriptor })
    await record(tx, caller, {
      action: 'workflows.update',
      target: { type: 'workflow', id: workflow.id, name: workflow.slug },
      before: facts(before.version, workflow.name, before.bundleDigest),
      after: facts(version, descriptor.name, built.bundle.digest),
    })
    return version
  })
  return deployed(deps, caller, id, version)
}

/** Deploys a version that nothing runs yet unless it is named. `changes` may be made to any version that is there. */
export async function createVersion(
  deps: UpdateDeps,
  call: LongCall,
  ref: WorkflowRef,
  update: Update,
): Promise<store.VersionRow> {
  const { caller } = call
  const { id, base } = await baseOf(deps, caller.orgId, ref, update.baseVersion)
  const built = await buildUpdate(deps, call, base, update)
  const version = await deps.db.begin(async (tx) => {
    const workflow = await lockFor(tx, caller.orgId, ref, built)
    const version = await addVersion(tx, caller, workflow, built)
    const target = { type: 'workflow', id: workflow.id, name: workflow.slug }
    const after = facts(version, built.descriptor.name, built.bundle.digest)
    await record(tx, caller, { action: 'workflows.createVersion', target, after })
    return version
  })
  return (await deployed(deps, caller, id, version)).version
}

/** The workflow, and the version that changes are made to: the current one unless another is named. */
async function baseOf(deps: { db: Db }, orgId: OrgId, ref: WorkflowRef, number: number | undefined) {
  const { id, version } = await needWorkflow(deps, orgId, ref)
  const base = await store.findVersion(deps.db, orgId, id, number ?? version)
  if (base) return { id, base }
  const message = `The workflow has no version ${number}; its current one is ${version}.`
  throw new Fault('CONFLICT', { path: 'baseVersion', version }, message)
}

async function lockFor(tx: Tx, orgId: OrgId, ref: WorkflowRef, built: BuiltWorkflow): Promise<store.LockedWorkflow> {
  const workflow = await store.lock(tx, orgId, ref)
  if (!workflow) throw new Fault('NOT_FOUND', { workflow: ref })
  assertSlug(built, workflow)
  return workflow
}

async function addVersion(tx: Tx, caller: Acting, { id }: store.LockedWorkflow, built: BuiltWorkflow): Promise<number> {
  const version = await store.nextVersion(tx, caller.orgId, id)
  await store.insertVersion(tx, { ...versionOf(caller, built), workflowId: id, version })
  return version
}

function assertSlug({ descriptor: { slug } }: BuiltWorkflow, workflow: { slug: string }): void {
  if (slug === workflow.slug) return
  throw new Fault(
    'CONFLICT',
    { path: 'slug' },
    `The files name the slug \`${slug}\`, the workflow is \`${workflow.slug}\`. A slug does not change: create another workflow, or correct workflow.jsonc.`,
  )
}

async function buildUpdate(
  deps: UpdateDeps,
  call: LongCall,
  { sourceDigest }: store.VersionRow,
  update: Update,
): Promise<BuiltWorkflow> {
  const { orgId } = call.caller
  const holding = deps.bodies.hold(orgId)
  try {
    const files = await filesAfter(update, deps.sources.of(orgId, sourceDigest), holding.take)
    return await build(deps, call, files, update)
  } finally {
    holding.release()
  }
}

/**
 * Objects first: a version in the database whose bundle is missing would fail every run; a bundle without a version
 * harms nobody.
 */
async function build(deps: DeployDeps, call: LongCall, files: SourceFile[], sent: Update): Promise<BuiltWorkflow> {
  const built = await buildAndTry(deps, call.caller.orgId, files).catch((error: unknown) => {
    throw error instanceof DeployError ? faultOf(error, sent) : error
  })
  await Promise.all(
    [built.bundle, built.source].map((object) => deps.objects.put(contentKey(object.digest), object.bytes)),
  )
  // It may have waited for a minute until others of its org were built.
  await call.stay()
  return built
}

async function buildAndTry(deps: DeployDeps, orgId: OrgId, files: SourceFile[]): Promise<BuiltWorkflow> {
  const built = await deps.builder.build(orgId, files)
  await trySchemas(deps, orgId, built)
  const more = await inboundWarnings(deps, orgId, built.descriptor)
  return { ...built, warnings: [...built.warnings, ...more.map((message) => ({ message, file: DESCRIPTOR_FILE }))] }
}

/** What the audit log says of a version; the rest of it stands under its number for good. */
const facts = (version: number, name: string, bundleDigest: string) => ({ version, name, bundleDigest })

function versionOf(caller: Acting, built: BuiltWorkflow): Omit<store.NewVersion, 'workflowId' | 'version'> {
  return {
    id: newId('ver'),
    orgId: caller.orgId,
    descriptor: built.descriptor,
    inputSchema: built.inputSchema,
    outputSchema: built.outputSchema,
    warnings: built.warnings.map(sentence),
    bundleDigest: built.bundle.digest,
    bundleBytes: built.bundle.bytes.byteLength,
    sourceDigest: built.source.digest,
    createdBy: caller.id,
  }
}

function sentence({ message, file, line, column }: DeployProblem): string {
  return file ? `${[file, line, column].filter((part) => part !== undefined).join(':')}: ${message}` : message
}

/** The workflow as it stands, and the version that was made here: another deploy may have made a newer one since. */
async function deployed(deps: DeployDeps, caller: Acting, id: WorkflowId, number: number): Promise<Deployed> {
  targetsChanged(deps, caller.orgId)
  // Somebody may have deleted it since.
  const workflow = (await store.findEvenDeleted(deps.db, caller.orgId, id))!
  const version = (await store.findVersion(deps.db, caller.orgId, workflow.id, number))!
  deps.log('workflow.deployed', { workflow: workflow.slug, version: version.version, bytes: version.bundleBytes })
  return { workflow, version }
}
