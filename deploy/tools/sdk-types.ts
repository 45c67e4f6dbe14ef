// Writes what the packages for npm have in place of the schemas: the client's table of routes, and declarations.
// With --check it writes nothing, and fails when one of them is out of date.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { clientTypes } from './sdk-types/client.ts'
import { exportsOf, flatten } from './sdk-types/flatten.ts'
import type { Wanted } from './sdk-types/flatten.ts'
import { tableText } from './sdk-types/table.ts'
import { PROJECT } from './source-files.ts'

const NOTE = `// Written by deploy/tools/sdk-types.ts; \`npx node deploy/tools/sdk-types.ts\` writes it anew.\n`
const NODE = '/// <reference types="node" />\n'
const RUNTIME = 'sdk/index.ts'
const CLIENT: Wanted = {
  'sdk/client/index.ts': ['createClient', 'ClientOptions', 'Follows'],
  'sdk/client/follow.ts': ['FollowOptions'],
  'sdk/client/follow-org.ts': ['FollowOrgOptions'],
  'sdk/client/across-connections.ts': ['ReconnectOptions'],
  'shared/ops/api-error.ts': ['ApiError', 'ApiErrorCode'],
  'shared/ops/base.ts': ['CallOptions'],
}

/** The text of each file, by its path. */
export function sdkTypes(): Record<string, string> {
  const printed = clientTypes()
  const client = [...printed.values(), flatten(PROJECT, CLIENT, new Set(printed.keys()))].join('\n')
  const runtime = flatten(PROJECT, wantedOf(RUNTIME))
  const texts = {
    'sdk/client/table.ts': tableText(),
    'sdk/types/index.d.ts': NODE + runtime,
    'sdk/types/client.d.ts': NODE + client,
  }
  return Object.fromEntries(Object.entries(texts).map(([file, text]) => [file, formatted(file, NOTE + text)]))
}

function wantedOf(file: string): Wanted {
  return { [file]: exportsOf(PROJECT, file) }
}

function formatted(file: string, text: string): string {
  const script = path.join(PROJECT, 'node_modules/oxfmt/bin/oxfmt')
  const options = { cwd: PROJECT, input: text, encoding: 'utf8', timeout: 60_000 } as const
  return execFileSync(process.execPath, [script, `--stdin-filepath=${file}`], options)
}

/** Files that say something else. */
export function outOfDate(wanted: Readonly<Record<string, string>> = sdkTypes()): string[] {
  const textOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined)
  return Object.keys(wanted).filter((file) => wanted[file] !== textOf(path.join(PROJECT, file)))
}

if (process.argv[1] === import.meta.filename) {
  const wanted = sdkTypes()
  const isCheck = process.argv.includes('--check')
  for (const file of outOfDate(wanted)) {
    if (!isCheck) writeFileSync(path.join(PROJECT, file), wanted[file]!)
    console.log(isCheck ? `${file} is out of date; run \`npx node deploy/tools/sdk-types.ts\`` : file)
    if (isCheck) process.exitCode = 1
  }
}
