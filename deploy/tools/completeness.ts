// What an operation must have to be whole: a handler, the tool that the contract names, a command, words, an example, a line in
// every reference.
import { createHandlers, type HandlerNeeds } from '@windlass/coordinator/api/index.ts'
import { tablesOf } from '@windlass/coordinator/mcp/table.ts'
import { type AnyExample, exampleOf, isDocumented, meaningOf } from '@windlass/shared/ops/words.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { kebab } from 'windlass/cli/fields.ts'
import { commandPaths } from './references/cli.ts'
import { references } from './references.ts'

/** All that is looked at. A test takes something away and sees that it is missed. */
export interface Surroundings {
  readonly rows: readonly AnyOp[]
  /** Ids of rows that are served. */
  readonly served: ReadonlySet<string>
  /** Names of the tools there are. */
  readonly tools: ReadonlySet<string>
  /** Which tool the contract names for an operation. */
  readonly wantedTools: ReadonlyMap<string, string>
  /** What can be typed, as `windlass environments list`, with the words under which it is listed: `windlass env list`. */
  readonly commands: ReadonlyMap<string, string>
  readonly exampleOf: (row: AnyOp) => AnyExample | undefined
  readonly documents: Readonly<Record<string, string>>
}

export function surroundings(wantedTools: ReadonlyMap<string, string>): Surroundings {
  // Nobody calls them.
  const handlers = createHandlers({} as HandlerNeeds)
  const served = Object.entries(handlers).flatMap(([group, own]) => Object.keys(own).map((name) => `${group}.${name}`))
  return {
    rows: allOps.filter(isDocumented),
    served: new Set(served),
    tools: new Set(tablesOf(handlers).tools.keys()),
    wantedTools,
    commands: commandPaths(),
    exampleOf,
    documents: references(),
  }
}

/** A sentence for everything that is missing. */
export function gaps(all: Surroundings): string[] {
  const ids = new Set(all.rows.map((row) => row.id))
  const unknown = [...all.wantedTools].filter(([id]) => !ids.has(id))
  return [
    ...unknown.map(([id, tool]) => `${id} is gone, and with it the tool ${tool} that the contract names`),
    ...all.rows.flatMap((row) => gapsOf(row, all).map((gap) => `${row.id} has no ${gap}`)),
  ]
}

function gapsOf(row: AnyOp, all: Surroundings): string[] {
  const example = all.exampleOf(row)
  const tool = all.wantedTools.get(row.id)
  const command = commandOf(row)
  const missing: [gap: string, isMissing: boolean][] = [
    ['handler: write one in coordinator/api', !all.served.has(row.id)],
    [`tool ${tool}, which the contract names: give the row \`mcp\``, tool !== undefined && !all.tools.has(tool)],
    [
      `command \`${command}\`: give its group \`command\` in ops.ts, or write one in sdk/cli/commands`,
      command !== undefined && !all.commands.has(command),
    ],
    ['summary', row.summary.trim() === ''],
    ['example: write one in words.ts of its folder in shared/ops', example === undefined],
    ['description: say in its example what the summary leaves out', (example?.about ?? '').trim() === ''],
    ...Object.keys(row.input.shape).map((name): [string, boolean] => [
      `meaning for its field \`${name}\`: give its schema a description`,
      example !== undefined && !meaningOf(row, name),
    ]),
    ...linesOf(row, all.commands.get(command ?? '')).map(([file, line]): [string, boolean] => [
      `line \`${line}\` in ${file}: run \`npx node deploy/tools/references.ts\``,
      !all.documents[file]?.split('\n').includes(line),
    ]),
  ]
  return missing.filter(([, isMissing]) => isMissing).map(([gap]) => gap)
}

/** Bytes are for a browser or for Prometheus, hooks for other systems; everything else can be typed. */
function commandOf(row: AnyOp): string | undefined {
  if (row.wire === 'bytes' || row.body === 'raw') return undefined
  const [group, name] = row.id.split('.')
  return `windlass ${row.command ?? `${group} ${kebab(name!)}`}`
}

function linesOf(row: AnyOp, listed: string | undefined): [file: string, line: string][] {
  return [
    ['rest.md', `### ${row.id}`],
    ...(row.mcp ? [['mcp.md', `## ${row.mcp.tool}`] as [string, string]] : []),
    ...(listed === undefined ? [] : [['cli.md', `## ${listed}`] as [string, string]]),
  ]
}
