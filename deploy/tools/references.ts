// Writes the reference documents in deploy/docs from what they describe: the operation table, the command line, the
// tools, the settings, the lockfile.
// With --check it writes nothing, and fails when one of them is out of date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { cliReference } from './references/cli.ts'
import { errorsReference } from './references/errors.ts'
import { mcpReference } from './references/mcp.ts'
import { restReference } from './references/rest.ts'
import { settingsReference } from './references/settings.ts'
import { thirdPartyReference } from './references/third-party.ts'
import { PROJECT } from './source-files.ts'

export const DOCS = path.join(PROJECT, 'deploy/docs')

/** The text of each document, by the name of its file. */
export function references(): Record<string, string> {
  return {
    'rest.md': restReference(),
    'cli.md': cliReference(),
    'mcp.md': mcpReference(),
    'settings.md': settingsReference(),
    'errors.md': errorsReference(),
    'third-party.md': thirdPartyReference(),
  }
}

/** Names of those whose file says something else. */
export function outOfDate(folder: string, wanted: Readonly<Record<string, string>> = references()): string[] {
  return Object.keys(wanted).filter((name) => wanted[name] !== textOf(path.join(folder, name)))
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

if (process.argv[1] === import.meta.filename) {
  const wanted = references()
  const old = outOfDate(DOCS, wanted)
  if (process.argv.includes('--check')) {
    for (const name of old)
      console.error(`deploy/docs/${name} is out of date; run \`npx node deploy/tools/references.ts\``)
    process.exitCode = old.length > 0 ? 1 : 0
  } else {
    mkdirSync(DOCS, { recursive: true })
    for (const name of old) {
      writeFileSync(path.join(DOCS, name), wanted[name]!)
      console.log(`deploy/docs/${name}`)
    }
  }
}
