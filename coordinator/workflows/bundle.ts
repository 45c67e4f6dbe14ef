import { setTimeout as after } from 'node:timers/promises'
import type { BuildFailure, BuildOptions, BuildResult, Message } from 'esbuild'
import * as esbuild from 'esbuild'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { isProgram, memoryFiles, NAMESPACE } from './bundle-plugin.ts'
import { DeployError, type DeployProblem } from './deploy-error.ts'
import { TOOLS_IDLE_MS, whenIdle } from './when-idle.ts'

const BUNDLE = 'main.mjs'
const MAP = `${BUNDLE}.map`
const DEADLINE_MS = 60_000
const MAX_PROBLEMS = 20

// CommonJS code that asks for a Node module calls `require`, which an ES module does not have by itself.
const REQUIRE_BANNER = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

export type Bundle = { files: SourceFile[]; warnings: DeployProblem[] }

/** esbuild keeps a child process; it is let go when nothing was bundled for this long. */
const idle = whenIdle(TOOLS_IDLE_MS, () => esbuild.stop())

/** Lets esbuild's child process go at once, for a coordinator that stops. */
export async function stopBundler(): Promise<void> {
  await idle.now()
}

/**
 * Bundles a workflow into one ES module and its source map. `windlass` stays an import, as the agent's runtime
 * provides it. The same files give the same bytes.
 */
export async function bundleWorkflow(files: readonly SourceFile[], entry: string): Promise<Bundle> {
  const contents = new Map(files.map(({ path, content }) => [path, content]))
  if (!isProgram(entry))
    throw new DeployError(`entry \`${entry}\` is not a program: name a .ts or .js file`, { path: 'entry' })
  return idle.busy(async () => {
    const options = bundleOptions(contents, entry)
    let result = await build(options)
    if (needsRequire(text(result, BUNDLE))) result = await build({ ...options, banner: { js: REQUIRE_BANNER } })
    refuseWithoutRun(result, entry)
    return {
      files: [
        { path: BUNDLE, content: text(result, BUNDLE) },
        { path: MAP, content: withPlainSources(text(result, MAP)) },
      ],
      warnings: result.warnings.map(problemOf),
    }
  })
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
    sourcesContent: true,
    charset: 'utf8',
    legalComments: 'none',
    jsx: 'automatic',
    // An empty one, or esbuild would look for a tsconfig.json around the coordinator.
    tsconfigRaw: {},
    logLevel: 'silent',
  } satisfies BuildOptions
}

async function build(options: ReturnType<typeof bundleOptions> & { banner?: { js: string } }): Promise<Result> {
  const context = await esbuild.context(options)
  const done = new AbortController()
  try {
    const late = after(DEADLINE_MS, undefined, { signal: done.signal, ref: false }).then(
      () => context.cancel(),
      () => undefined,
    )
    const result = await context.rebuild()
    done.abort()
    await late
    return result
  } catch (error) {
    throw asDeployError(error)
  } finally {
    done.abort()
    await context.dispose()
  }
}

function asDeployError(error: unknown): unknown {
  if (!isBuildFailure(error)) return error
  const problems = error.errors.slice(0, MAX_PROBLEMS).map(problemOf)
  const first = problems[0]
  if (!first)
    return new DeployError(`the bundle took longer than ${DEADLINE_MS / 1000} s: deploy fewer or smaller files`, {
      path: 'files',
    })
  const more = error.errors.length > 1 ? ` (and ${error.errors.length - 1} more)` : ''
  const { message, ...place } = first
  return new DeployError(`${placeText(first)}${message}${more}`, { path: pathOf(first), ...place, problems })
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
}

function problemOf({ text, location }: Message): DeployProblem {
  if (!location) return { message: text }
  // esbuild counts columns from 0, people and editors from 1.
  return { message: text, file: withoutNamespace(location.file), line: location.line, column: location.column + 1 }
}

function placeText({ file, line, column }: DeployProblem): string {
  return file === undefined ? '' : `${file}:${line}:${column}: `
}

function pathOf({ file }: DeployProblem): string {
  return file === undefined ? 'files' : `files/${file}`
}

function refuseWithoutRun(result: Result, entry: string) {
  const exported = Object.values(result.metafile.outputs).flatMap((output) => output.exports)
  if (exported.includes('run')) return
  const instead = exported.length > 0 ? ` (it exports ${exported.map((name) => `\`${name}\``).join(', ')})` : ''
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

function text(result: Result, name: string): string {
  const file = result.outputFiles.find(({ path }) => path.endsWith(`/${name}`) || path.endsWith(`\\${name}`))
  if (!file) throw new Error(`esbuild wrote no ${name}`)
  return file.text
}

/** Stack traces then name `index.ts` beside the bundle rather than a scheme nobody knows. */
function withPlainSources(map: string): string {
  const parsed = JSON.parse(map) as { sources: string[] }
  return JSON.stringify({ ...parsed, sources: parsed.sources.map(withoutNamespace) })
}

function withoutNamespace(path: string): string {
  return path.startsWith(`${NAMESPACE}:`) ? path.slice(NAMESPACE.length + 1) : path
}
