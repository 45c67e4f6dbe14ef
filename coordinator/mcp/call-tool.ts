import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { decodeStrings } from '@windlass/shared/ops/fill-route.ts'
import { faultFor } from '../call/failures.ts'
import type { Plan } from '../call/plan.ts'
import type { Asking } from './asking.ts'
import { type Fields, invoke } from './invoke.ts'
import { countThatFit, failureOf, resultOf, type ToolResult } from './result.ts'
import { isPaged } from '../api/page.ts'
import { ALIASES } from './schema.ts'
import type { ToolTable } from './table.ts'

/** No tool has this name: an error of the protocol, not of a tool. */
export class UnknownTool extends Error {}

const BY_HAND = 'No tool does this, with any credential: what it is about must not stand in a conversation.'

export async function callTool(table: ToolTable, asking: Asking, name: string, given: Fields): Promise<ToolResult> {
  const tool = table.get(name)
  if (!tool) throw new UnknownTool(`There is no tool \`${name}\`${didYouMean(name, table.keys())}`)
  const { plan, instead } = tool
  if (instead !== undefined) return failureOf(new Fault('FORBIDDEN', { tool: name }, BY_HAND), instead)
  try {
    const own = plan.scopedToOrg ? { org: asking.caller.org } : {}
    const input = { ...own, ...withLists(plan, withoutAliases(plan, given)) }
    return await answer(plan, asking, input)
  } catch (error) {
    const { requestId, deps } = asking
    const { log, config } = deps
    const fault = faultFor(error, { plan, input: given, requestId, log, strict: config.strict })
    // The client has gone: whatever is answered, nobody reads it.
    return failureOf(fault ?? new Fault('UNAVAILABLE'))
  }
}

async function answer(plan: Plan, asking: Asking, input: Fields): Promise<ToolResult> {
  const value = await invoke(plan, asking, input)
  const fit = isPaged(plan.row) ? rowsThatFit(value) : undefined
  if (fit === undefined) return resultOf(plan, input, value)
  // A shorter page instead of a page with holes: its cursor leads to what was left out.
  const shorter = await invoke(plan, asking, { ...input, limit: fit })
  return resultOf(plan, input, shorter, [`The page has ${fit} items only; \`nextCursor\` leads to the others.`])
}

/** How many rows of a list fit into an answer, when they are not all, and more than one. */
function rowsThatFit(value: Fields): number | undefined {
  const rows = Object.values(value).find(Array.isArray)
  if (!rows || rows.length <= 1) return undefined
  const fit = Math.max(1, countThatFit(rows))
  return fit < rows.length ? fit : undefined
}

/** A filter that takes several values takes one as plain text, or several as in a query. */
function withLists({ row }: Plan, fields: Fields): Fields {
  if (row.method !== 'GET') return fields
  const read = ([name, value]: [string, unknown]): [string, unknown] => {
    const decoded = typeof value === 'string' ? decodeStrings(row.input, { [name]: value })[name] : value
    return [name, Array.isArray(decoded) ? decoded : value]
  }
  return Object.fromEntries(Object.entries(fields).map(read))
}

function withoutAliases({ row }: Plan, given: Fields): Fields {
  const fields = { ...given }
  for (const [alias, { field }] of Object.entries(ALIASES[row.id] ?? {})) {
    if (!Object.hasOwn(fields, alias)) continue
    if (Object.hasOwn(fields, field)) {
      const message = `\`${alias}\` is another name of \`${field}\`: give one of them`
      throw new Fault('VALIDATION_FAILED', { path: alias }, message)
    }
    fields[field] = fields[alias]
    delete fields[alias]
  }
  return fields
}
