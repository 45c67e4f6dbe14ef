import type { Plugin } from 'esbuild'
import { didYouMean } from '@windlass/shared/did-you-mean.ts'

/** What a program can import by name; the runtime of the agent provides it. A test holds this against the package. */
export const SDK_EXPORTS = [
  'AgentStoppedError',
  'CallRefusedError',
  'CancelledError',
  'InputTimedOutError',
  'RunCancelledError',
  'RunFailedError',
  'TimedOutError',
  'context',
  'log',
  'phase',
  'requestInput',
  'sleep',
  'step',
  'workflows',
] as const

/**
 * Stands before the answers for files, in a build that only looks: the package is a module with these exports there, so
 * that esbuild refuses an import of anything else. The bundle itself leaves the package to the agent.
 */
export function sdkExports(): Plugin {
  const contents = SDK_EXPORTS.map((name) => `export const ${name} = undefined`).join('\n')
  return {
    name: 'sdk-exports',
    setup(build) {
      build.onResolve({ filter: /^windlass$/ }, ({ path, kind }) =>
        kind === 'import-statement' ? { path, namespace: 'sdk' } : undefined,
      )
      build.onLoad({ filter: /.*/, namespace: 'sdk' }, () => ({ contents, loader: 'js' }))
    },
  }
}

const NO_EXPORT = /^No matching export in "sdk:windlass" for import "(.+)"$/

/** What esbuild says of an import that the package does not have, in our words; undefined of anything else. */
export function missingFromSdk(text: string): string | undefined {
  const name = NO_EXPORT.exec(text)?.[1]
  if (name === undefined) return undefined
  return `\`windlass\` exports no \`${name}\`${didYouMean(name, SDK_EXPORTS)}: the program could not be started`
}
