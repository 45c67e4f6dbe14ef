import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

type Run = (input: unknown, context: unknown) => unknown

/** Bundles leave `windlass` out; here it is found beside this file, whatever folder the bundle lies in. */
export function provideSdk(sdkFile: string): void {
  const url = pathToFileURL(sdkFile).href
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'windlass' ? { url, shortCircuit: true } : next(specifier, context),
  })
}

/** The `run` of a bundle. Loading a module a second time gives the first one back, with whatever state it has. */
export async function loadRun(bundleFile: string): Promise<Run> {
  const { run } = await loadModule(bundleFile)
  if (typeof run === 'function') return run as Run
  const found = run === undefined ? 'it exports no `run`' : `its \`run\` is a ${typeof run}`
  throw new Error(
    `The program cannot be executed: ${found}. Write \`export async function run(input, context) { … }\`.`,
  )
}

/** `require` of an ES module costs 2 ms less than `import()`, but cannot wait for a top-level await. */
function loadModule(file: string): { run?: unknown } | Promise<{ run?: unknown }> {
  try {
    return require(file) as { run?: unknown }
  } catch (error) {
    if (!(error instanceof Error) || Reflect.get(error, 'code') !== 'ERR_REQUIRE_ASYNC_MODULE') throw error
    return import(pathToFileURL(file).href) as Promise<{ run?: unknown }>
  }
}
