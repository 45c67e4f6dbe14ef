import type { z } from 'zod'
import type { Workflow, WorkflowVersion } from '../../model/workflow.ts'
import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

const WORKFLOW: z.input<typeof Workflow> = {
  id: IDS.workflow,
  org: 'acme',
  slug: 'approval',
  name: 'approval',
  description: 'Pays an invoice when somebody has said yes.',
  version: 3,
  pool: 'default',
  process: 'fresh',
  createdAt: NINE - 30 * DAY_MS,
  updatedAt: NINE - 2 * DAY_MS,
  disabledAt: null,
  disabledBy: null,
  deletedAt: null,
  purgeAt: null,
}

const VERSION: z.input<typeof WorkflowVersion> = {
  id: IDS.version,
  workflow: { id: IDS.workflow, slug: 'approval' },
  version: 3,
  descriptor: { slug: 'approval', entry: 'index.ts', pool: 'default', timeoutMs: 60_000, retries: { crash: 3 } },
  inputSchema: {
    type: 'object',
    properties: { payee: { type: 'string' }, amount: { type: 'number', minimum: 1 }, patience: { type: 'string' } },
    required: ['payee', 'amount'],
  },
  outputSchema: { type: 'object', properties: { paid: { type: 'boolean' } }, required: ['paid'] },
  bundleDigest: '9f2c1d0b7a6e5f48c3b2a190817263544536271809fedcba0123456789abcdef',
  bundleBytes: 18_432,
  warnings: [],
  createdAt: NINE - 2 * DAY_MS,
  createdBy: IDS.ciKey,
}

const FIRST: z.input<typeof WorkflowVersion> = {
  ...VERSION,
  id: IDS.firstVersion,
  version: 1,
  createdAt: WORKFLOW.createdAt,
}

const FILES = [
  { path: 'workflow.jsonc', content: '{ "slug": "approval", "timeout": "1m" }\n' },
  {
    path: 'index.ts',
    content:
      'export async function run(input: { payee: string; amount: number; patience?: string }): Promise<{ ' +
      'paid: boolean }> {\n  return { paid: input.amount < 100 }\n}\n',
  },
]

export const workflows: ExamplesOf<'workflows'> = {
  list: {
    about:
      'Pages are joined by `nextCursor`: send it as `cursor` until it is null. The files of a workflow ' +
      'come with `workflows.get`.',
    input: { org: 'acme', limit: 20 },
    output: { workflows: [WORKFLOW], nextCursor: null },
  },
  create: {
    about:
      'The files are checked, bundled, and the schemas of input and output derived from the types of ' +
      '`run`; the coordinator executes none of it. The slug in `workflow.jsonc` names the workflow. A ' +
      'slug that exists is refused with `WORKFLOW_EXISTS`: deploy that with `workflows.update`. What is ' +
      'wrong in the files comes back as `VALIDATION_FAILED` with file and line. Next: `runs.trigger`.',
    input: { org: 'acme', files: FILES },
    output: { workflow: { ...WORKFLOW, version: 1, updatedAt: WORKFLOW.createdAt }, version: FIRST },
  },
  get: {
    about: 'The input that `runs.trigger` takes is described by `version.inputSchema`.',
    input: { org: 'acme', workflow: 'approval' },
    output: { workflow: WORKFLOW, version: VERSION, files: FILES },
  },
  file: {
    about: [
      'Slashes of the path may be written as they are, or as `%2F`. A part has up to 16,000 characters in JSON;',
      'read on from `part.nextOffset` until it is null, with the `version` of the first part, since another may be',
      'deployed meanwhile. An offset at the end or behind it answers an empty part.',
    ].join(' '),
    input: { org: 'acme', workflow: 'approval', path: 'index.ts' },
    output: {
      file: FILES[1]!,
      version: 3,
      part: { offset: 0, chars: FILES[1]!.content.length, nextOffset: null },
    },
    fields: { path: 'Path of the file, as `workflows.get` shows it.' },
  },
  update: {
    about: [
      'Runs that were created before keep the version they have. Either all `files` are sent, not only ' +
        'the changed ones,',
      'or `changes` to the version `baseVersion`; then another deploy in between is answered with `CONFLICT`.',
      'The slug in `workflow.jsonc` must stay. The same files again make one more version that does the same.',
    ].join(' '),
    input: { org: 'acme', workflow: 'approval', files: FILES },
    output: { workflow: WORKFLOW, version: VERSION },
  },
  delete: {
    about: [
      'Its slug is free at once. It is left out of lists; by its id it stays readable with its versions, and its runs',
      'stay as they are. A trigger, a retry, a restart and a call from another run find it no more. Until `purgeAt`,',
      '30 days later, `workflows.restore` brings it back; then it goes for good, once its last run has ended.',
      'With `runs=cancel` up to 1,000 unfinished runs are cancelled in the same transaction, and more by a job, which',
      '`jobs.list` shows.',
    ].join(' '),
    input: { org: 'acme', workflow: 'approval' },
    output: {},
  },
  restore: {
    about: [
      'Under the same id, with its versions and its state: one that was disabled is so still. Where another',
      'workflow has its slug by now, it is refused with `WORKFLOW_EXISTS` until `slug` gives another; the next deploy',
      'then needs that slug in `workflow.jsonc`. By its slug the one is meant that was deleted last.',
    ].join(' '),
    input: { org: 'acme', workflow: IDS.workflow },
    output: { workflow: WORKFLOW },
  },
  disable: {
    about: [
      'Triggers, retries, restarts and calls from other runs are refused with `WORKFLOW_DISABLED` until',
      '`workflows.enable`; runs that are queued or under way go on, and deploys are taken. Another coordinator may let',
      'runs in for one more second. Asked again it changes nothing: `disabledBy` stays who asked first.',
    ].join(' '),
    input: { org: 'acme', workflow: 'approval' },
    output: { workflow: { ...WORKFLOW, disabledAt: NINE, disabledBy: IDS.ciKey } },
  },
  enable: {
    about: 'From now on runs of it start again; those that were refused meanwhile are not made up for.',
    input: { org: 'acme', workflow: 'approval' },
    output: { workflow: WORKFLOW },
  },
  listVersions: {
    about: 'Versions are never changed nor removed. Pages are joined by `nextCursor`.',
    input: { org: 'acme', workflow: 'approval', limit: 20 },
    output: { versions: [VERSION, FIRST], nextCursor: null },
  },
  createVersion: {
    about: [
      'It is built and checked as by `workflows.update`, and takes the next number. Triggers run it when they name it',
      'as `version`, so it can be tried before `workflows.promote` makes it current.',
    ].join(' '),
    input: { org: 'acme', workflow: 'approval', files: FILES },
    output: { version: { ...VERSION, version: 4, createdAt: NINE } },
  },
  promote: {
    about: [
      'Triggers run it from now on, and name and description of the workflow are those of its `workflow.jsonc`.',
      'The number of the next deploy is counted on from the highest. Asked again it changes nothing.',
    ].join(' '),
    input: { org: 'acme', workflow: 'approval', version: 1 },
    output: { workflow: { ...WORKFLOW, version: 1, updatedAt: NINE } },
    fields: { version: 'Number of the version that is to be current.' },
  },
  getVersion: {
    about:
      'With its files as they were deployed. To run a version that is not the current one, name it in `runs.trigger`.',
    input: { org: 'acme', workflow: 'approval', version: 1 },
    output: { version: FIRST, files: FILES },
  },
}
