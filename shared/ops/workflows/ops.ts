import { z } from 'zod'
import { Slug, WorkflowRef } from '../../ids.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { Offset, Part } from '../../model/part.ts'
import { SourceFile, Workflow, WorkflowVersion } from '../../model/workflow.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'
import { Changes, Files, VERSION_FIELDS, versions } from './versions.ts'

export const group: Group = {
  command: 'What is deployed.',
  docs: 'What is deployed: packages of files with a descriptor, in versions that never change.',
}

const BaseVersion = z.int().min(1).meta({
  description: 'The version that was read before; wanted with `changes`. When another is current: `CONFLICT`.',
})

export const rows = {
  list: op({
    id: 'workflows.list',
    method: 'GET',
    path: '/v1/orgs/{org}/workflows',
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'viewer',
    mcp: {
      tool: 'list_workflows',
      when: 'To see which workflows there are, with their slugs. get_workflow shows one with the schema of its input.',
    },
    cli: {
      table: {
        columns: {
          WORKFLOW: 'slug',
          VERSION: 'version',
          'POOL?': 'pool',
          'UPDATED?': 'updatedAt',
          DISABLED: 'disabledAt',
          'DELETED UNTIL?': 'purgeAt',
          'ID?': 'id',
          DESCRIPTION: 'description',
        },
        none: 'No workflows. Next: windlass deploy path/to/workflow',
      },
    },
    summary: 'List the workflows of an org, newest first.',
    input: z.strictObject({
      org: Slug,
      deleted: z.boolean().default(false).meta({
        description: 'Only those that are deleted and can be restored. Takes the role admin and `workflow:delete`.',
      }),
      ...PageQuery,
    }),
    output: z.object({ workflows: z.array(Workflow), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  create: op({
    id: 'workflows.create',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows',
    credentials: ['key', 'session'],
    scope: ['workflow:create'],
    role: 'member',
    mcp: {
      tool: 'create_workflow',
      when:
        'To deploy a new workflow from its files: `workflow.jsonc` with a slug and the entry, `index.ts` ' +
        'unless named, that exports `run`. Code that does not build is refused with file and line. Then ' +
        'trigger_now runs it; for a slug that exists use update_workflow.',
    },
    command: 'deploy',
    summary: 'Deploy a new workflow from its files.',
    input: z.strictObject({ org: Slug, files: Files }),
    output: z.object({ workflow: Workflow, version: WorkflowVersion }),
    faults: ['WORKFLOW_EXISTS'],
    success: 201,
    carries: 'files',
  }),
  get: op({
    id: 'workflows.get',
    method: 'GET',
    path: '/v1/orgs/{org}/workflows/{workflow}',
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'viewer',
    mcp: {
      tool: 'get_workflow',
      when:
        'To read a workflow with its files, its descriptor and the schemas of its input and output. Do ' +
        'this before trigger_now or update_workflow.',
    },
    cli: {
      fields: {
        workflow: 'workflow.slug',
        id: 'workflow.id',
        name: 'workflow.name',
        description: 'workflow.description',
        version: '{version.version}, by {version.createdBy}, {version.createdAt}',
        pool: 'workflow.pool',
        process: 'workflow.process',
        disabled: 'by {workflow.disabledBy}, {workflow.disabledAt}',
        deleted: '{workflow.deletedAt}, for good {workflow.purgeAt}',
        ...VERSION_FIELDS,
      },
    },
    summary: 'Get a workflow with the files and schemas of its current version.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef }),
    output: z.object({ workflow: Workflow, version: WorkflowVersion, files: z.array(SourceFile) }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  file: op({
    id: 'workflows.file',
    method: 'GET',
    path: '/v1/orgs/{org}/workflows/{workflow}/files/{path}',
    slashes: true,
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'viewer',
    mcp: {
      tool: 'get_workflow_file',
      when: [
        'To read one file of a workflow whole, for instance where get_workflow shows its beginning only.',
        'A long one comes in parts: call again with its `version` and `nextOffset` as `offset`,',
        'until that is null.',
      ].join(' '),
    },
    cli: {
      print: ['{file.content}'],
      note: ['It goes on with --version {version} --offset {part.nextOffset}'],
    },
    summary: 'Get one file of a workflow, a long one in parts.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      path: SourceFile.shape.path,
      version: z.int().min(1).optional().meta({ description: 'A version other than the current one.' }),
      offset: Offset.default(0),
    }),
    output: z.object({ file: SourceFile, version: z.int(), part: Part }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  update: op({
    id: 'workflows.update',
    method: 'PUT',
    path: '/v1/orgs/{org}/workflows/{workflow}',
    credentials: ['key', 'session'],
    scope: ['workflow:update'],
    role: 'member',
    mcp: {
      tool: 'update_workflow',
      when: [
        'To deploy changed files as a new version, which runs use from then on; runs that exist keep theirs.',
        'Pass `changes` with the files that differ, and the version that you have read as `baseVersion`:',
        'all others stay. Or pass all `files` of the package, each of them whole: get_workflow_file has what is cut.',
      ].join(' '),
      idempotent: false,
    },
    command: 'deploy',
    summary: 'Deploy changed files as a new version and make it current.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      files: Files.optional(),
      changes: Changes.optional(),
      baseVersion: BaseVersion.optional(),
    }),
    output: z.object({ workflow: Workflow, version: WorkflowVersion }),
    faults: ['NOT_FOUND', 'CONFLICT'],
    success: 200,
    carries: 'files',
  }),
  delete: op({
    id: 'workflows.delete',
    method: 'DELETE',
    path: '/v1/orgs/{org}/workflows/{workflow}',
    credentials: ['key', 'session'],
    scope: ['workflow:delete'],
    role: 'admin',
    mcp: {
      tool: 'delete_workflow',
      when: [
        'To take a workflow away: no run of it starts any more, and those under way go on.',
        'A person can restore it for 30 days. To stop it for a while use disable_workflow.',
      ].join(' '),
      destructive: true,
    },
    cli: {
      print: ['{workflow} is deleted'],
      note: ['Next: windlass workflows restore {workflow} brings it back, for 30 days'],
    },
    summary: 'Delete a workflow. It can be restored for 30 days; runs that exist go on.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      runs: z.enum(['keep', 'cancel']).default('keep').meta({
        description: 'What becomes of its unfinished runs: they go on, or are cancelled.',
      }),
    }),
    output: z.object({}),
    faults: ['NOT_FOUND'],
    success: 204,
  }),
  restore: op({
    id: 'workflows.restore',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/restore',
    credentials: ['key', 'session'],
    scope: ['workflow:delete'],
    role: 'admin',
    cli: {
      print: ['{workflow.slug} is back, with version {workflow.version}'],
    },
    summary: 'Bring a deleted workflow back, with its versions.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      slug: Slug.optional().meta({ description: 'Another slug than it had, for instance as that is taken by now.' }),
    }),
    output: z.object({ workflow: Workflow }),
    faults: ['NOT_FOUND', 'WORKFLOW_EXISTS'],
    success: 200,
  }),
  disable: op({
    id: 'workflows.disable',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/disable',
    credentials: ['key', 'session'],
    scope: ['workflow:update'],
    role: 'member',
    stops: true,
    mcp: {
      tool: 'disable_workflow',
      when: [
        'To let no run of a workflow start for a while, however it is triggered.',
        'What runs already goes on: cancel_run ends that. enable_workflow undoes it.',
      ].join(' '),
      idempotent: true,
    },
    cli: {
      print: ['{workflow.slug} is disabled: no run of it starts'],
      note: [
        'Next: windlass workflows enable {workflow.slug}',
        'Runs under way: windlass runs list --workflow {workflow.slug}',
      ],
    },
    summary: 'Let no run of a workflow start until it is enabled. Runs that exist go on.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef }),
    output: z.object({ workflow: Workflow }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  enable: op({
    id: 'workflows.enable',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/enable',
    credentials: ['key', 'session'],
    scope: ['workflow:update'],
    role: 'member',
    mcp: {
      tool: 'enable_workflow',
      when: 'To let runs of a workflow start again that was disabled; get_workflow shows by whom and since when.',
      idempotent: true,
    },
    cli: {
      print: ['{workflow.slug} is enabled'],
    },
    summary: 'Let runs of a disabled workflow start again.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef }),
    output: z.object({ workflow: Workflow }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  ...versions,
}
