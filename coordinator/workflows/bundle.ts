import { setTimeout as after } from 'node:timers/promises'
import type { BuildFailure, BuildOptions, BuildResult, Message } from 'esbuild'
import * as esbuild from 'esbuild'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { COMPUTED_PATH, isProgram, memoryFiles } from './bundle-plugin.ts'
import { DeployError, type DeployProblem } from './deploy-error.ts'
import { missingFromSdk, sdkExports } from './sdk-imports.ts'
import { NAMESPACE, ownMap, withoutNamespace } from './source-map.ts'

const BUNDLE = 'main.mjs'
const MAP = `${BUNDLE}.map`
const DEADLINE_MS = 45_000
const MAX_PROBLEMS = 20

export type Bundle = { files: SourceFile[]; warnings: DeployProblem[] }

/** esbuild's own process has ended in the middle of a build. */
export class BundlerGone extends Error {}

/**
 * Bundles a workflow into one ES module and its source map. `windlass` stays an import, as the agent's runtime
 * provides it. The same files give the same bytes.
 */
export async function bundleWorkflow(files: readonly SourceFile[], entry: string): Promise<Bundle> {
  const contents = new Map(files.map(({ path, content }) => [path, content]))
  if (!isProgram(entry))
    throw new DeployError(`entry \`${entry}\` is not a program: name a .ts or .js file`, { path: 'entry' })
  const options = bundleOptions(contents, entry)
  let result = await build(options)
  const code = text(result, BUNDLE)
  if (needsRequire(code)) result = await build({ ...options, banner: { js: requireBanner(code) } })
  refuseWithoutRun(result, entry)
  if (importsSdk(result)) await build({ ...options, sourcemap: false, plugins: [sdkExports(), ...options.plugins] })
  return {
    files: [
      { path: BUNDLE, content: text(result, BUNDLE) },
      { path: MAP, content: ownMap(text(result, MAP), contents) },
    ],
    warnings: problemsOf(result.warnings),
  }
}

function importsSdk({ metafile }: Result): boolean {
  return Object.values(metafile.outputs).some(({ imports }) => imports.some(({ path }) => path === 'windlass'))
}

type Result = BuildResult<{ write: false; metafile: true }>

function bundleOptions(contents: ReadonlyMap<string, string>, entry: string) {
  return {
    entryPoints: [entry],
    plugins: [memoryFiles(contents)],
    bundle: true,
    write: false,
    metafile: true,
    outfile: BUNDLE,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    sourcemap: 'linked',
    // Ours are put in afterwards: what esbuild reads by itself must not come out of it.
    sourcesContent: false,
    charset: 'utf8',
    legalComments: 'none',
    jsx: 'automatic',
    // An empty one, or esbuild would look for a tsconfig.json around the coordinator.
    tsconfigRaw: {},
    // Node gives them to CommonJS modules only. A program's own constants of these names stay what they are.
    define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
    logLevel: 'silent',
    // Whether a folder of this machine is empty is not to be told from whether it is there.
    logOverride: { 'empty-glob': 'error' },
  } satisfies BuildOptions
}

type Options = Omit<ReturnType<typeof bundleOptions>, 'sourcemap'> & Pick<BuildOptions, 'banner' | 'sourcemap'>

async function build(options: Options): Promise<Result> {
  const context = await esbuild.context(options)
  const done = new AbortController()
  let isLate = false
  const cancelled = after(DEADLINE_MS, undefined, { signal: done.signal, ref: false }).then(
    () => {
      isLate = true
      return context.cancel()
    },
    () => undefined,
  )
  try {
    return await context.rebuild()
  } catch (error) {
    throw isLate ? tooLong() : asDeployError(error)
  } finally {
    done.abort()
    await cancelled
    await context.dispose()
  }
}

function tooLong(): DeployError {
  const message = `the bundle took longer than ${DEADLINE_MS / 1000} s: deploy fewer or smaller files`
  return new DeployError(message, { path: 'files' })
}

function asDeployError(error: unknown): unknown {
  if (isOfDeadService(error)) return new BundlerGone('esbuild has ended', { cause: error })
  if (!isBuildFailure(error)) return error
  const all = problemsOf(error.errors)
  const problems = all.slice(0, MAX_PROBLEMS)
  const first = problems[0]
  if (!first) return error
  const more = all.length > 1 ? ` (and ${all.length - 1} more)` : ''
  const { message, ...at } = first
  return new DeployError(`${locationText(first)}${message}${more}`, { path: pathOf(first), ...at, problems })
}

function isOfDeadService(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const texts = isBuildFailure(error) ? error.errors.map(({ text }) => text) : [error.message]
  return texts.some((text) => /^The service (was stopped|is no longer running)|^write EPIPE/.test(text))
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
}

/** Drops repeated problems: a path made at run time is refused once for each file of this machine that fits it. */
function problemsOf(messages: readonly Message[]): DeployProblem[] {
  return [...new Map(messages.map(problemOf).map((problem) => [JSON.stringify(problem), problem])).values()]
}

function problemOf(message: Message): DeployProblem {
  const { location } = message
  const text = missingFromSdk(message.text) ?? (isOfComputedPath(message) ? COMPUTED_PATH : message.text)
  if (!location) return { message: text }
  if (!location.file.startsWith(`${NAMESPACE}:`)) return { message: COMPUTED_PATH }
  // esbuild counts columns from 0, people and editors from 1.
  return { message: text, file: withoutNamespace(location.file), line: location.line, column: location.column + 1 }
}

/** Our plugin answers all other imports, so what esbuild itself cannot resolve is a path made at run time. */
function isOfComputedPath({ id, text }: Message): boolean {
  return id === 'empty-glob' || text.startsWith('Could not resolve ')
}

function locationText({ file, line, column }: DeployProblem): string {
  return file === undefined ? '' : `${file}:${line}:${column}: `
}

function pathOf({ file }: DeployProblem): string {
  return file === undefined ? 'files' : `files/${file}`
}

/** A program may export a million names. */
const MOST_EXPORTS = 20

function refuseWithoutRun(result: Result, entry: string) {
  const exported = Object.values(result.metafile.outputs).flatMap((output) => output.exports)
  if (exported.includes('run')) return
  const names = exported.slice(0, MOST_EXPORTS).map((name) => `\`${name.slice(0, 200)}\``)
  const more = exported.length > MOST_EXPORTS ? ` and ${exported.length - MOST_EXPORTS} more` : ''
  const instead = names.length > 0 ? ` (it exports ${names.join(', ')}${more})` : ''
  throw new DeployError(
    `${entry} does not export \`run\`${instead}: write \`export async function run(input, context) { … }\``,
    {
      path: `files/${entry}`,
      file: entry,
    },
  )
}

function needsRequire(code: string): boolean {
  return /\b__require\d*\(/.test(code)
}

/**
 * CommonJS code that asks for a Node module calls `require`, which an ES module does not have by itself. esbuild
 * renames what else is called `require`, but knows nothing of the name that this import takes.
 */
function requireBanner(code: string): string {
  let name = 'createRequireOfBundle'
  while (code.includes(name)) name += '_'
  return `import { createRequire as ${name} } from 'node:module'; const require = ${name}(import.meta.url);`
}

function text(result: Result, name: string): string {
  const file = result.outputFiles.find(({ path }) => path.endsWith(`/${name}`) || path.endsWith(`\\${name}`))
  if (!file) throw new Error(`esbuild wrote no ${name}`)
  return file.text
}
