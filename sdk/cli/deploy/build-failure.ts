import path from 'node:path'
import type { BuildFailure, Message } from 'esbuild'
import { Failure } from '../failure.ts'
import { aliasOf } from './aliases.ts'

const SHOWN = 5

/** What esbuild refused, told with file and line; anything else that was thrown stays what it is. */
export function buildFailure(error: unknown, folder: string): unknown {
  if (!isBuildFailure(error)) return error
  const own = error.errors.map(ownFailure).find((found) => found !== undefined)
  if (own) return own
  const aliased = error.errors.map((message) => aliasFailure(message, folder)).find((found) => found !== undefined)
  if (aliased) return aliased
  const lines = error.errors.slice(0, SHOWN).map(messageText)
  const more = error.errors.length > SHOWN ? [`and ${error.errors.length - SHOWN} more`] : []
  return new Failure([...lines, ...more].join('\n'), nextStep(error.errors[0]))
}

/** What a plugin of ours refused; one that does not know the importer waits to be told it. */
function ownFailure({ detail, location }: { detail: unknown; location: Message['location'] }): Failure | undefined {
  const found = typeof detail === 'function' ? (detail as (at?: string) => unknown)(location?.file) : detail
  return found instanceof Failure ? found : undefined
}

function messageText({ text, location }: Message): string {
  return location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text
}

/** What could not be found, unless it is a file. */
function missingPackage({ text }: Message): string | undefined {
  return /^Could not resolve "([^"./][^"]*)"/.exec(text)?.[1]
}

/** The advice to install what only looks like a package would bring the package of a stranger. */
function aliasFailure(message: Message, folder: string): Failure | undefined {
  const specifier = missingPackage(message)
  // A package of others knows nothing of our aliases.
  const alias = specifier === undefined || askingPackage(message) ? undefined : aliasOf(folder, specifier)
  if (!alias) return undefined
  const file = path.relative(folder, alias.file)
  return new Failure(
    `\`${specifier}\` is an alias (\`${alias.name}\`) of ${file}, and a deploy does not know aliases.`,
    'import the file by its relative path, then windlass deploy again',
  )
}

/** The installed package whose code asks for what was not found. */
function askingPackage({ location }: Message): string | undefined {
  const inside = location?.file.split(/(?:^|[\\/])node_modules[\\/]/).at(-1)
  return location && inside !== location.file ? packageName((inside ?? '').replaceAll('\\', '/')) : undefined
}

function nextStep(first: Message | undefined): string {
  const specifier = first && missingPackage(first)
  if (!first || specifier === undefined) return 'mend the line that is named, then windlass deploy again'
  const name = packageName(specifier)
  const asking = askingPackage(first)
  if (asking === undefined)
    return `see that \`${name}\` is the npm package that you mean, and npm install it for the workflow's folder`
  return (
    `\`${asking}\` asks for \`${name}\`, which is not installed, and may be an optional part of it. A deploy bundles ` +
    `all that a package asks for: use a package that does without, or install what \`${asking}\` documents`
  )
}

/** `@scope/pkg/sub` → `@scope/pkg`. */
export function packageName(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
}
