import type { Log } from '@windlass/shared/log.ts'
import { createHash } from 'node:crypto'
import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, WorkflowRef } from '@windlass/shared/ids.ts'
import type { Workflow, WorkflowVersion } from '@windlass/shared/model/workflow.ts'
import type { Db } from '../db/client.ts'
import { countFitting } from '../db/page-bytes.ts'
import { createSeats } from '../limits/seats.ts'
import type { ObjectStore } from '../objects/store.ts'
import type { Source, Sources } from './sources.ts'
import { contentKey } from '../objects/key.ts'
import { damagedObject, missingObject } from './object-faults.ts'
import * as store from './store.ts'

type ReadDeps = { db: Db; sources: Sources }

export async function getWorkflow(deps: ReadDeps, orgId: OrgId, ref: WorkflowRef) {
  const workflow = await needReadable(deps, orgId, ref)
  const version = (await store.findVersion(deps.db, orgId, workflow.id, workflow.version))!
  return {
    workflow: presentWorkflow(workflow),
    version: presentVersion(version),
    source: deps.sources.of(orgId, version.sourceDigest),
  }
}

export async function getVersion(deps: ReadDeps, orgId: OrgId, ref: WorkflowRef, number: number) {
  const workflow = await needReadable(deps, orgId, ref)
  const version = await store.findVersion(deps.db, orgId, workflow.id, number)
  if (!version) throw new Fault('NOT_FOUND', { workflow: ref, version: number })
  return { version: presentVersion(version), source: deps.sources.of(orgId, version.sourceDigest) }
}

/** The files of one version, the current one unless another is named. */
export async function sourceOf(deps: ReadDeps, orgId: OrgId, ref: WorkflowRef, number: number | undefined) {
  const { version, source } = await (number === undefined
    ? getWorkflow(deps, orgId, ref)
    : getVersion(deps, orgId, ref, number))
  return { version: version.version, source }
}

/** A file that a workflow does not have, with the name of one that it has. */
export async function missingFile(source: Source, workflow: WorkflowRef, path: string): Promise<Fault> {
  const hint = didYouMean(path, await source.paths())
  return new Fault('NOT_FOUND', { workflow, path }, `\`${workflow}\` has no file \`${path}\`${hint}.`)
}

export async function listWorkflows(deps: { db: Db }, orgId: OrgId, page: store.WorkflowPage) {
  return (await store.list(deps.db, orgId, page)).map(presentWorkflow)
}

/** So many of the page as fit into one answer, and the one behind them. */
export async function listVersions(
  deps: { db: Db },
  orgId: OrgId,
  ref: WorkflowRef,
  page: { before: number | undefined; limit: number },
) {
  const { id } = await needReadable(deps, orgId, ref)
  const fitting = countFitting(await store.sizesOf(deps.db, orgId, id, page))
  const rows = await store.listVersions(deps.db, orgId, id, { ...page, limit: fitting + 1 })
  return { versions: rows.map(presentVersion), fitting }
}

/** Undefined: none of this name or id. By its id also one that is deleted is found. */
export function findWorkflow(deps: { db: Db }, orgId: OrgId, ref: WorkflowRef) {
  return store.findEvenDeleted(deps.db, orgId, ref)
}

async function needReadable(deps: { db: Db }, orgId: OrgId, ref: WorkflowRef): Promise<store.WorkflowRow> {
  const workflow = await store.findEvenDeleted(deps.db, orgId, ref)
  if (!workflow) throw new Fault('NOT_FOUND', { workflow: ref })
  return workflow
}

export async function needWorkflow(deps: { db: Db }, orgId: OrgId, ref: WorkflowRef): Promise<store.WorkflowRow> {
  const workflow = await store.find(deps.db, orgId, ref)
  if (!workflow) throw new Fault('NOT_FOUND', { workflow: ref })
  return workflow
}

/** Pieces of bundles that are read at this moment. Orgs have their turns, however many requests one has. */
const seats = createSeats({ org: 4, all: 16 })

/**
 * A bundle, for an agent of the org that owns it. It may have 50 MiB, and a fleet reads it at once, so nobody has it in
 * memory as a whole.
 */
export async function bundleOf(
  { db, objects, log }: { db: Db; objects: ObjectStore; log: Log },
  orgId: OrgId,
  digest: string,
): Promise<{ bytes: number; pieces: AsyncGenerator<Uint8Array, void, void> }> {
  if (!(await store.ownsBundle(db, orgId, digest))) throw new Fault('NOT_FOUND', { digest })
  const key = contentKey(digest)
  const found = await objects.stat(key)
  if (!found) throw missingObject(log, digest)
  async function* pieces() {
    const stream = await objects.stream(key)
    if (!stream) throw missingObject(log, digest)
    const hash = createHash('sha256')
    for await (const piece of inTurns(orgId, stream)) {
      hash.update(piece)
      yield piece
    }
    // The agent refuses it as well, and cannot know whose disk it was.
    if (hash.digest('hex') !== digest) throw damagedObject(log, digest)
  }
  return { bytes: found.size, pieces: pieces() }
}

/** Between its pieces a slow reader keeps no other from its turn. */
async function* inTurns(orgId: OrgId, stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const pieces = stream[Symbol.asyncIterator]()
  try {
    for (;;) {
      const leave = await seats.take(orgId)
      const next = await pieces.next().finally(leave)
      if (next.done) return
      yield next.value
    }
  } finally {
    await pieces.return?.()
  }
}

export function presentWorkflow(row: store.WorkflowRow): Workflow {
  return {
    id: row.id,
    org: row.org,
    slug: row.slug,
    name: row.name,
    description: row.description,
    version: row.version,
    pool: row.pool,
    process: row.process,
    createdAt: row.createdAt.getTime(),
    updatedAt: row.updatedAt.getTime(),
    disabledAt: row.disabledAt?.getTime() ?? null,
    disabledBy: row.disabledBy,
    deletedAt: row.deletedAt?.getTime() ?? null,
    purgeAt: row.deletedAt && row.deletedAt.getTime() + store.RESTORE_MS,
  }
}

export function presentVersion(row: store.VersionRow): WorkflowVersion {
  return {
    id: row.id,
    workflow: { id: row.workflowId, slug: row.slug },
    version: row.version,
    descriptor: row.descriptor,
    inputSchema: row.inputSchema,
    outputSchema: row.outputSchema,
    bundleDigest: row.bundleDigest,
    bundleBytes: row.bundleBytes,
    warnings: row.warnings,
    createdAt: row.createdAt.getTime(),
    createdBy: row.createdBy,
  }
}
