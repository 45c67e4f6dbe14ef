import { z } from 'zod'
import { Slug, WorkflowRef } from '../../ids.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { FileChange, SourceFile, Workflow, WorkflowVersion } from '../../model/workflow.ts'
import { op } from '../op.ts'

export const Files = z.array(SourceFile).min(1).max(2000).meta({
  description:
    'All files of the package: `workflow.jsonc`, the entry that exports `run`, whatever it imports, README and skills.',
})

export const Changes = z.array(FileChange).min(1).max(2000).meta({
  description:
    'In place of `files`: only those that are new, change or go. The others stay as they are in `baseVersion`.',
})

const VersionNumber = z.int().min(1).meta({ description: 'Number of the version: 1, 2, 3 …' })

/** What the command line shows of a version. */
export const VERSION_FIELDS = {
  input: 'version.inputSchema',
  output: 'version.outputSchema',
  bundle: '{version.bundleBytes}, {version.bundleDigest}',
  files: 'files.path',
  warning: 'version.warnings.*',
}

/** Rows of the group `workflows`. */
export const versions = {
  listVersions: op({
    id: 'workflows.listVersions',
    method: 'GET',
    path: '/v1/orgs/{org}/workflows/{workflow}/versions',
    credentials: ['key', 'session'],
    scope: ['workflow_version:read'],
    role: 'viewer',
    mcp: {
      tool: 'list_workflow_versions',
      when:
        'To see what has been deployed of a workflow, when and by whom. trigger_now and retry_run take a ' +
        '`version`.',
    },
    command: 'workflows versions',
    cli: {
      table: {
        columns: {
          VERSION: 'version',
          CREATED: 'createdAt',
          BY: 'createdBy',
          SIZE: 'bundleBytes',
          'DIGEST?': 'bundleDigest',
        },
      },
    },
    summary: 'List the versions of a workflow, newest first.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef, ...PageQuery }),
    output: z.object({ versions: z.array(WorkflowVersion), nextCursor: NextCursor }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  createVersion: op({
    id: 'workflows.createVersion',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/versions',
    credentials: ['key', 'session'],
    scope: ['workflow_version:create'],
    role: 'member',
    command: 'deploy',
    summary: 'Deploy files as a new version without making it current.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      files: Files.optional(),
      changes: Changes.optional(),
      baseVersion: z.int().min(1).optional().meta({
        description: 'The version that `changes` are made to, which need not be the current one; wanted with them.',
      }),
    }),
    output: z.object({ version: WorkflowVersion }),
    faults: ['NOT_FOUND', 'CONFLICT'],
    success: 201,
    carries: 'files',
  }),
  promote: op({
    id: 'workflows.promote',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/versions/{version}/promote',
    credentials: ['key', 'session'],
    scope: ['workflow:update'],
    role: 'member',
    mcp: {
      tool: 'promote_workflow_version',
      when: [
        'To make an earlier version of a workflow current again, for instance as the newest one fails,',
        'or a newer one. list_workflow_versions shows them; runs that exist keep theirs.',
      ].join(' '),
      idempotent: true,
    },
    cli: {
      print: ['{workflow.slug} runs version {workflow.version} from now on'],
    },
    summary: 'Make a version current: roll back or forward. Runs that exist keep theirs.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef, version: VersionNumber }),
    output: z.object({ workflow: Workflow }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  getVersion: op({
    id: 'workflows.getVersion',
    method: 'GET',
    path: '/v1/orgs/{org}/workflows/{workflow}/versions/{version}',
    credentials: ['key', 'session'],
    scope: ['workflow_version:read'],
    role: 'viewer',
    mcp: {
      tool: 'get_workflow_version',
      when:
        'To read the files and schemas of one version of a workflow, for instance to compare it with the ' +
        'current one.',
    },
    cli: {
      fields: {
        workflow: 'version.workflow.slug',
        version: '{version.version}, by {version.createdBy}, {version.createdAt}',
        ...VERSION_FIELDS,
      },
    },
    summary: 'Get one version of a workflow with its files.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef, version: VersionNumber }),
    output: z.object({ version: WorkflowVersion, files: z.array(SourceFile) }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
}
