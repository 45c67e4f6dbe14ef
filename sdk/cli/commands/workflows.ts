import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { SourceFile, Workflow, WorkflowVersion } from '@windlass/shared/model/workflow.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { schemaText } from '../schema-text.ts'
import { does } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import { bytesText, cellTime, note, timeText } from '../terminal.ts'
import { tellNextPage } from '../next-page.ts'
import { addLifecycle } from './workflow-lifecycle.ts'

export function addWorkflows(program: Command): void {
  const group = groupCommand(program, 'workflows')
  addList(group)
  addGet(group)
  addVersions(group)
  addLifecycle(group)
}

function addList(group: Command): void {
  does(rowCommand(group, 'list', ops.workflows.list), async (session, positional, options) => {
    const answer = await session.client.workflows.list(await rowArgs(ops.workflows.list, positional, options))
    await session.answer(answer, async () => {
      const rows = answer.workflows.map((w) => [
        w.slug,
        String(w.version),
        w.pool,
        cellTime(w.updatedAt),
        stateOf(w),
        w.description,
      ])
      await printTable(['WORKFLOW', 'VERSION', 'POOL?', 'UPDATED?', 'STATE', 'DESCRIPTION'], rows)
      if (rows.length === 0 && options['deleted'] === true) note('No workflow can be restored.')
      else if (rows.length === 0) note('No workflows. Next: windlass deploy path/to/workflow')
      tellNextPage(answer.nextCursor)
    })
  })
}

/** One that is deleted is restored by its id. */
function stateOf({ id, disabledAt, purgeAt }: Workflow): string {
  if (purgeAt !== null) return `${id}, until ${cellTime(purgeAt)}`
  return disabledAt === null ? '' : 'disabled'
}

function addGet(group: Command): void {
  does(rowCommand(group, 'get', ops.workflows.get), async (session, positional, options) => {
    const answer = await session.client.workflows.get(await rowArgs(ops.workflows.get, positional, options))
    await session.answer(answer, () => printFields(fieldsOf(answer)))
  })
}

function fieldsOf({
  workflow,
  version,
  files,
}: {
  workflow: Workflow
  version: WorkflowVersion
  files: SourceFile[]
}): [string, string][] {
  const paths = files.map((file) => file.path)
  const fields: [string, string][] = [
    ['workflow', workflow.slug],
    ['id', workflow.id],
    ['name', workflow.name],
    ['description', workflow.description],
    ['version', `${version.version}, by ${version.createdBy}, ${timeText(version.createdAt)}`],
    ['pool', workflow.pool],
    ['process', workflow.process],
    ['disabled', workflow.disabledAt ? `by ${workflow.disabledBy}, ${timeText(workflow.disabledAt)}` : ''],
    ['deleted', workflow.deletedAt ? `${timeText(workflow.deletedAt)}, for good ${timeText(workflow.purgeAt)}` : ''],
    ['input', schemaText(version.inputSchema)],
    ['output', schemaText(version.outputSchema)],
    ['bundle', `${bytesText(version.bundleBytes)}, ${version.bundleDigest}`],
    ['files', paths.length > 20 ? `${paths.slice(0, 20).join(', ')} and ${paths.length - 20} more` : paths.join(', ')],
    ...version.warnings.map((warning): [string, string] => ['warning', warning]),
  ]
  return fields.filter(([, value]) => value !== '')
}

function addVersions(group: Command): void {
  does(rowCommand(group, 'versions', ops.workflows.listVersions), async (session, positional, options) => {
    const answer = await session.client.workflows.listVersions(
      await rowArgs(ops.workflows.listVersions, positional, options),
    )
    await session.answer(answer, async () => {
      const rows = answer.versions.map((v) => [
        String(v.version),
        cellTime(v.createdAt),
        v.createdBy,
        bytesText(v.bundleBytes),
        v.bundleDigest.slice(0, 19),
      ])
      await printTable(['VERSION', 'CREATED', 'BY', 'SIZE', 'DIGEST?'], rows)
      tellNextPage(answer.nextCursor)
    })
  })
}
