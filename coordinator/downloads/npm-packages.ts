import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions, type BuildResult, type Plugin } from 'esbuild'
import manifest from '../package.json' with { type: 'json' }
import type { Entry } from './archive.ts'
import { licencesOf } from './licences.ts'

// The two packages for npm. What they need of others lies in them (`bundleDependencies`), so that no registry is asked.

const SDK = dirname(fileURLToPath(import.meta.resolve('windlass')))
const PROJECT = dirname(SDK)

const COMMON = {
  bundle: true,
  write: false,
  metafile: true,
  outdir: 'unwritten',
  // Relative to one folder wherever the checkout lies: the names of inputs find their way into the names of the pieces.
  absWorkingDir: PROJECT,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  charset: 'utf8',
  legalComments: 'none',
  logLevel: 'silent',
} satisfies BuildOptions

const REQUIRE =
  "import { createRequire as windlassRequire } from 'node:module'; " +
  'const require = windlassRequire(import.meta.url);'

const MANIFEST = { version: manifest.version, license: 'UNLICENSED', type: 'module', engines: { node: '>=20' } }

/** `windlass`: what programs import, and the client. */
export async function sdkPackage(): Promise<Entry[]> {
  const entryPoints = { index: join(SDK, 'index.ts'), client: join(SDK, 'client/index.ts') }
  const made = await build({ ...COMMON, entryPoints })
  const { version, entries } = await nodeTypes()
  const own = {
    name: 'windlass',
    description: 'What Windlass workflows import, and a typed client of the service.',
    ...MANIFEST,
    types: './index.d.ts',
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      './client': { types: './client.d.ts', default: './client.js' },
      './package.json': './package.json',
    },
    dependencies: { '@types/node': version },
    bundleDependencies: ['@types/node'],
  }
  return [
    manifestEntry(own),
    { path: 'README.md', content: SDK_README },
    ...filesOf(made, ''),
    await textEntry('index.d.ts', join(SDK, 'types/index.d.ts')),
    await textEntry('client.d.ts', join(SDK, 'types/client.d.ts')),
    ...entries,
  ]
}

/** `windlass-cli`: the command. */
export async function cliPackage(): Promise<Entry[]> {
  const made = await build({
    ...COMMON,
    entryPoints: { main: join(SDK, 'cli/package-main.ts') },
    splitting: true,
    // The main file of jsonc-parser hides its `require` from bundlers.
    mainFields: ['module', 'main'],
    // The same esbuild for every platform: that of the coordinator would run on the coordinator's platform only.
    alias: { esbuild: 'esbuild-wasm' },
    external: ['esbuild-wasm'],
    plugins: [englishOnly],
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunk-[hash]',
    // CommonJS packages ask for Node's modules by `require`, which an ES module does not have by itself.
    banner: { js: REQUIRE },
    minifyWhitespace: true,
    minifySyntax: true,
  })
  const { version, entries } = await esbuildWasm()
  const own = {
    name: 'windlass-cli',
    description: 'The command `windlass`: writes, deploys and runs Windlass workflows.',
    ...MANIFEST,
    bin: { windlass: 'bin/windlass.mjs' },
    dependencies: { 'esbuild-wasm': version },
    bundleDependencies: ['esbuild-wasm'],
  }
  const command = await readFile(join(SDK, 'cli/package-bin.mjs'), 'utf8')
  return [
    manifestEntry(own),
    { path: 'README.md', content: CLI_README },
    { path: 'LICENCES.txt', content: await licencesOf('The command', PROJECT, Object.keys(made.metafile.inputs)) },
    { path: 'bin/windlass.mjs', content: command.replaceAll('@VERSION@', manifest.version), isProgram: true },
    // As deep as in the sources, whose paths lead from there to the templates.
    ...filesOf(made, 'lib/cli'),
    ...(await folderEntries('templates/hello', join(SDK, 'templates/hello'))),
    ...entries,
  ]
}

/** The command speaks English: the messages of zod in 50 other languages would double what each start reads. */
const englishOnly: Plugin = {
  name: 'english-only',
  setup(builder) {
    builder.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    }))
  },
}

function manifestEntry(own: object): Entry {
  return { path: 'package.json', content: `${JSON.stringify(own, null, 2)}\n` }
}

function filesOf({ outputFiles = [] }: BuildResult, folder: string): Entry[] {
  return outputFiles.map(({ path, text }) => ({
    path: join(folder, relative(join(PROJECT, COMMON.outdir), path)),
    content: text,
  }))
}

async function textEntry(path: string, file: string): Promise<Entry> {
  return { path, content: await readFile(file, 'utf8') }
}

async function folderEntries(path: string, folder: string, isWanted = (_name: string) => true): Promise<Entry[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const names = found.filter((each) => each.isFile()).map((each) => relative(folder, join(each.parentPath, each.name)))
  return names.filter(isWanted).map((name) => ({ path: join(path, name), content: { file: join(folder, name) } }))
}

interface Bundled {
  version: string
  entries: Entry[]
}

/** The types of Node's own modules: without them an editor knows neither `fetch` nor `process`. */
async function nodeTypes(): Promise<Bundled> {
  const types = folderOf('@types/node')
  const { version, dependencies = {} } = await manifestOf(types)
  const isWanted = (name: string) => /(^|\/)(package\.json|LICENSE)$|\.d\.[cm]?ts$/.test(name)
  const needed = Object.keys(dependencies).map((name) =>
    folderEntries(`node_modules/${name}`, folderOf(name, types), isWanted),
  )
  const own = folderEntries('node_modules/@types/node', types, isWanted)
  return { version, entries: (await Promise.all([own, ...needed])).flat() }
}

const ESBUILD_FILES = ['package.json', 'LICENSE.md', 'esbuild.wasm', 'wasm_exec.js', 'wasm_exec_node.js']

async function esbuildWasm(): Promise<Bundled> {
  const folder = folderOf('esbuild-wasm')
  const { version } = await manifestOf(folder)
  const inside = (name: string) => `node_modules/esbuild-wasm/${name}`
  const whole = ESBUILD_FILES.map((name) => ({ path: inside(name), content: { file: join(folder, name) } }))
  // The Node that runs the command is not always the first one in the PATH.
  const library = await patched(join(folder, 'lib/main.js'), '"node", [path2.join', 'process.execPath, [path2.join')
  // V8 would optimize 14 MB of WebAssembly first: 4 s in Node 20, where this takes 0.4 s.
  const quick = "#!/usr/bin/env node\nrequire('node:v8').setFlagsFromString('--liftoff-only')\n"
  const program = await patched(join(folder, 'bin/esbuild'), '#!/usr/bin/env node\n', quick)
  const changed = [
    { path: inside('lib/main.js'), content: library },
    { path: inside('bin/esbuild'), content: program, isProgram: true },
  ]
  return { version, entries: [...whole, ...changed] }
}

async function patched(file: string, from: string, to: string): Promise<string> {
  const text = await readFile(file, 'utf8')
  if (text.split(from).length !== 2) throw new Error(`${file} has ${JSON.stringify(from)} not exactly once`)
  return text.replace(from, to)
}

function folderOf(name: string, from?: string): string {
  const require = createRequire(from === undefined ? import.meta.url : join(from, 'package.json'))
  return dirname(require.resolve(`${name}/package.json`))
}

async function manifestOf(folder: string): Promise<{ version: string; dependencies?: Record<string, string> }> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }
}

const SDK_README = `# windlass

What Windlass workflows import, and \`createClient\` of \`windlass/client\`, which has a typed function
for each operation of the service. It comes from the coordinator; \`windlass upgrade-sdk\` writes its newest address.
`
const CLI_README = `# windlass-cli

The command \`windlass\`: \`npx --no-install windlass --help\`. It comes from the coordinator;
\`windlass upgrade-sdk\` writes its newest address.
`
