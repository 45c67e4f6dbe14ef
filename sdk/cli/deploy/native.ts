import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Plugin } from 'esbuild'
import { Failure } from '../failure.ts'

/** A `.node` file cannot be bundled: it is refused by name instead of by a complaint about loaders. */
export const refuseNativeFile: Plugin = {
  name: 'refuse-native-file',
  setup(build) {
    build.onResolve({ filter: /\.node$/ }, ({ path: specifier, importer }) => {
      return { errors: [{ text: 'native addon', detail: nativeFailure(packageOf(importer) ?? specifier) }] }
    })
  },
}

/**
 * Some packages find their addon at run time, by a name that no bundler sees: they bundle without complaint and fail on
 * the agent. What they bring along gives them away.
 */
export async function refuseNativePackages(folder: string, inputs: readonly string[]): Promise<void> {
  const roots = new Set(
    inputs.map((input) => packageRoot(path.resolve(folder, input))).filter((root) => root !== undefined),
  )
  for (const root of roots) {
    const sign = await signOfAddon(root)
    const name = packageOf(`${root}/`) ?? root
    if (sign && 'binary' in sign) throw binaryFailure(name, sign.binary)
    if (sign) throw nativeFailure(`${name} (${sign.addon})`)
  }
}

const BINARY_PACKAGE = /(linux|darwin|win32)[-.](x64|arm64|ia32|arm)/
const ADDON_LOADERS = new Set([
  'bindings',
  'node-gyp-build',
  'node-gyp-build-optional-packages',
  'prebuild-install',
  '@mapbox/node-pre-gyp',
])

interface Manifest {
  gypfile?: boolean
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

async function signOfAddon(root: string): Promise<{ addon: string } | { binary: string } | undefined> {
  const names = await readdir(root)
  if (names.includes('binding.gyp')) return { addon: 'it has a binding.gyp' }
  if (!names.includes('package.json')) return undefined
  const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as Manifest
  if (manifest.gypfile === true) return { addon: 'it is built by node-gyp' }
  const loader = Object.keys(manifest.dependencies ?? {}).find((name) => ADDON_LOADERS.has(name))
  if (loader !== undefined) return { addon: `it loads its addon by ${loader}` }
  const binary = Object.keys(manifest.optionalDependencies ?? {}).find((name) => BINARY_PACKAGE.test(name))
  return binary === undefined ? undefined : { binary }
}

/** `…/node_modules/@scope/pkg/lib/a.js` → `…/node_modules/@scope/pkg`; nothing for a file of no package. */
function packageRoot(file: string): string | undefined {
  return /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/s.exec(file)?.[1]
}

function packageOf(file: string): string | undefined {
  return packageRoot(file)
    ?.split(/[\\/]node_modules[\\/]/)
    .at(-1)
    ?.replaceAll('\\', '/')
}

function nativeFailure(name: string): Failure {
  return new Failure(
    `\`${name}\` is a native addon, and a workflow travels without binaries.`,
    'use a package in plain JavaScript or WebAssembly in its place, then windlass deploy again',
  )
}

/** An addon, or a program of its own: it is not known which. */
function binaryFailure(name: string, binary: string): Failure {
  return new Failure(
    `\`${name}\` brings a binary for each platform (\`${binary}\` and the like), and a workflow travels without them.`,
    'use a package in plain JavaScript or WebAssembly in its place; what is installed on the machines of the agents ' +
      'is started with node:child_process',
  )
}
