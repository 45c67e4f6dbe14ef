import { createHandlers, type HandlerNeeds } from '@windlass/coordinator/api/index.ts'
import { tablesOf, type ToolPlan } from '@windlass/coordinator/mcp/table.ts'
import { schemaText } from 'windlass/cli/schema-text.ts'
import { code, headed, table } from './markdown.ts'

const ABOUT = `The tools at \`/mcp/v1\` (streamable HTTP), for clients that send an API key or a session as bearer. Each does what the REST
operation of the same line in [rest.md](rest.md) does, with the same arguments, checks and errors; \`org\` may be left out. A list shows what
the credential may call.`

const HINTS = `Hints to clients: *reads* changes nothing; *destroys* loses what does not come back; *repeatable* does no more when it is called
twice; *acts* makes a program act, and who knows on what.`

export function mcpReference(): string {
  const tools = [...tablesOf(createHandlers({} as HandlerNeeds)).tools.values()].sort((a, b) =>
    a.listed.name < b.listed.name ? -1 : 1,
  )
  const index = table(
    ['tool', 'operation', 'hints', 'title'],
    tools.map((tool) => [code(tool.listed.name), tool.plan.row.id, hints(tool), tool.listed.title]),
  )
  return headed('MCP', ABOUT, HINTS, index, ...tools.map(section))
}

function hints({ listed: { annotations }, instead }: ToolPlan): string {
  if (instead !== undefined) return 'says where to do it'
  const hints = [
    annotations.readOnlyHint && 'reads',
    annotations.destructiveHint && 'destroys',
    annotations.idempotentHint && !annotations.readOnlyHint && 'repeatable',
    annotations.openWorldHint && 'acts',
  ]
  return hints.filter((hint) => hint !== false).join(', ')
}

interface Property {
  description?: string
  default?: unknown
}

function section({ listed, instead }: ToolPlan): string {
  const parts = [`## ${listed.name}`, listed.description]
  if (instead !== undefined) parts.push(`It changes nothing, and answers where to do it: ${instead}`)
  const { properties = {}, required = [] } = listed.inputSchema as {
    properties?: Record<string, Property>
    required?: string[]
  }
  const rows = Object.entries(properties).map(([name, property]) => {
    const otherwise = property.default === undefined ? 'optional' : code(JSON.stringify(property.default))
    const need = required.includes(name) ? 'required' : otherwise
    return [code(name), code(schemaText(property)), need, property.description ?? '']
  })
  if (rows.length > 0) parts.push(table(['argument', 'type', 'default', 'what it is'], rows))
  return parts.join('\n\n')
}
