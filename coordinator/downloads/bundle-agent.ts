import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { licencesOf } from './licences.ts'

/** What a machine needs of us to be an agent, beside a Node. */
export interface AgentBundle {
  /** Texts by their path. */
  files: Map<string, string>
}

// CommonJS packages ask for Node's modules by `require`, which an ES module does not have by itself.
const BANNER =
  "import { createRequire as windlassRequire } from 'node:module'; const require = windlassRequire(import.meta.url);"
/** Native parts that `ws` uses where somebody has installed them. */
const EXTERNAL = ['bufferutil', 'utf-8-validate']
const DIGEST_FILE = 'digest'
const RUNTIME_FILES = ['host.cjs', 'engine.cjs', 'windlass.mjs', DIGEST_FILE]

/** The agent with its commands, and the program's side beside it. `folder` is for what is made on the way. */
export async function bundleAgent(folder: string): Promise<AgentBundle> {
  const sdkEntry = fileURLToPath(import.meta.resolve('windlass'))
  const files = new Map<string, string>()
  await buildRuntime(sdkEntry, folder)
  for (const name of RUNTIME_FILES) files.set(`lib/runtime/${name}`, await readFile(join(folder, name), 'utf8'))
  const { outputFiles, metafile } = await build({
    entryPoints: { windlass: join(dirname(sdkEntry), 'cli/agent-main.ts') },
    bundle: true,
    write: false,
    metafile: true,
    outdir: folder,
    // Relative to one folder wherever the checkout lies: the names of inputs find their way into the names of the pieces.
    absWorkingDir: dirname(dirname(sdkEntry)),
    format: 'esm',
    splitting: true,
    platform: 'node',
    target: 'node22',
    external: EXTERNAL,
    // The agent knows the runtime that it was packed with, whatever lies beside it one day.
    define: { WINDLASS_RUNTIME_DIGEST: JSON.stringify(files.get(`lib/runtime/${DIGEST_FILE}`)) },
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunk-[hash]',
    banner: { js: BANNER },
    // Names stay: the stacks in the log of an agent are all that we see of it.
    minifyWhitespace: true,
    minifySyntax: true,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
  })
  for (const file of outputFiles) files.set(join('lib', relative(folder, file.path)), file.text)
  const inputs = [...Object.keys(metafile.inputs), ...(await inputsOfRuntime(sdkEntry))]
  files.set('LICENCES.txt', await licencesOf('The agent', dirname(dirname(sdkEntry)), inputs))
  return { files }
}

/** By the script with which an agent in a checkout does it. */
async function buildRuntime(sdkEntry: string, folder: string): Promise<void> {
  const script = createRequire(sdkEntry).resolve('@windlass/agent/run/build-runtime.ts')
  await promisify(execFile)(process.execPath, [script, sdkEntry, folder])
}

async function inputsOfRuntime(sdkEntry: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [
      sdkEntry,
      join(dirname(sdkEntry), 'runtime/host/main.ts'),
      join(dirname(sdkEntry), 'runtime/engine/main.ts'),
    ],
    bundle: true,
    write: false,
    metafile: true,
    outdir: 'unwritten',
    absWorkingDir: dirname(dirname(sdkEntry)),
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  })
  return Object.keys(metafile.inputs)
}
