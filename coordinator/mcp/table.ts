import { type AnyOp, type Tool, isSessionOnly } from '@windlass/shared/ops/op.ts'
import type { Handlers } from '../api/index.ts'
import { type Plan, planPaths } from '../call/plan.ts'
import type { Sizes } from '../sizes.ts'
import { type ObjectSchema, inputSchemaOf, outputSchemaOf } from './schema.ts'

/** A tool as clients are shown it. */
export interface ListedTool {
  name: string
  title: string
  description: string
  inputSchema: ObjectSchema
  outputSchema?: ObjectSchema
  annotations: {
    title: string
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
}

export interface ToolPlan {
  readonly plan: Plan
  readonly listed: ListedTool
  /** Where a person does by hand what no tool does. Such a tool never does more than say so. */
  readonly instead?: string
}

export type ToolTable = ReadonlyMap<string, ToolPlan>

/** What mints or holds credentials is left to people: whoever reads a conversation would read them too. */
const BY_HAND: Readonly<Record<string, string>> = {
  'keys.create':
    'On the host of the coordinator: `windlass admin keys create --org <org> --name <name> --role <role>`; or with a session: `windlass keys create`.',
  'secrets.set':
    'In a terminal, with a session: `windlass secrets set <NAME>`, which asks for the value or reads it from a pipe. On the host of the coordinator `windlass admin sessions create --org <org> --role admin` makes a session.',
}

/** The plan of a row, whether or not it is a tool. */
export type PlanOf = (row: Pick<AnyOp, 'id'>) => Plan

export interface Tables {
  readonly tools: ToolTable
  readonly planOf: PlanOf
}

/** Every row that has `mcp`, as a tool; and the way from rows to what serves them. */
export function tablesOf(handlers: Handlers, sizes?: Sizes): Tables {
  const plans = new Map<string, Plan>()
  for (const { methods } of planPaths(handlers, sizes))
    for (const plan of Object.values(methods)) if (plan) plans.set(plan.row.id, plan)
  const tools = [...plans.values()].flatMap((plan) =>
    plan.row.mcp ? [[plan.row.mcp.tool, toolOf(plan, plan.row.mcp)] as const] : [],
  )
  return {
    tools: new Map(tools),
    planOf({ id }) {
      const plan = plans.get(id)
      if (!plan) throw new Error(`there is no row ${id}`)
      return plan
    },
  }
}

function toolOf(plan: Plan, tool: Tool): ToolPlan {
  const { row } = plan
  if (!isSessionOnly(row)) return { plan, listed: listed(row, tool) }
  const instead = BY_HAND[row.id]
  if (instead === undefined) throw new Error(`${row.id} is for sessions only; say in mcp/table.ts where it is done`)
  return { plan, listed: stub(tool), instead }
}

function listed(row: AnyOp, tool: Tool): ListedTool {
  const title = titleOf(tool.tool)
  const isRead = row.method === 'GET'
  return {
    name: tool.tool,
    title,
    description: tool.when,
    inputSchema: inputSchemaOf(row),
    outputSchema: outputSchemaOf(row),
    annotations: {
      title,
      readOnlyHint: isRead,
      destructiveHint: tool.destructive ?? row.method === 'DELETE',
      idempotentHint: tool.idempotent ?? row.method !== 'POST',
      openWorldHint: tool.openWorld ?? false,
    },
  }
}

/** It takes nothing: a value that is passed to it would stand in the conversation. */
function stub({ tool, when }: Tool): ListedTool {
  const title = titleOf(tool)
  return {
    name: tool,
    title,
    description: when,
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    annotations: {
      title,
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    },
  }
}

/** `create_api_key` → `Create API key`. */
function titleOf(name: string): string {
  const parts = name.split('_').map((part) => (part === 'api' ? 'API' : part))
  return parts.map((part, at) => (at === 0 ? part[0]!.toUpperCase() + part.slice(1) : part)).join(' ')
}
