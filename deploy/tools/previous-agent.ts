// node deploy/tools/previous-agent.ts <commit> <file.tar.gz>: packs the agent of an earlier commit, with what it takes to run it, so
// that tests can start it against the coordinator of today. Done once for each protocol that is given up.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { build, type BuildOptions, type Plugin } from 'esbuild'
import { PROJECT } from './source-files.ts'

/** A repository keeps every version of such a file for ever. */
const MOST_BYTES = 1024 * 1024

const [commit, target] = process.argv.slice(2)
if (!commit || !target) throw new Error('usage: previous-agent.ts <commit> <file.tar.gz>')

const folder = mkdtempSync(path.join(tmpdir(), 'windlass-previous-'))
try {
  const sources = path.join(folder, 'sources')
  const packed = path.join(folder, 'packed')
  for (const each of [sources, packed]) mkdirSync(each)
  const archive = execFileSync('git', ['archive', commit, 'agent', 'shared', 'sdk'], {
    cwd: PROJECT,
    maxBuffer: 256 * 1024 * 1024,
  })
  execFileSync('tar', ['-x', '-C', sources], { input: archive })
  await bundle(sources, packed)
  const sameEachTime = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '-I', 'gzip -9n']
  execFileSync('tar', [...sameEachTime, '-cf', path.resolve(target), '-C', packed, ...readdirSync(packed)])
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const { size } = statSync(target)
if (size > MOST_BYTES) throw new Error(`${target} has ${size} bytes; a fixture may have ${MOST_BYTES}`)
process.stdout.write(`${target}: ${size} bytes\n`)

async function bundle(sources: string, outdir: string): Promise<void> {
  const common = {
    bundle: true,
    platform: 'node',
    target: 'node22',
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
    // The packages of today; their versions have not changed what is said on the wire.
    nodePaths: [path.join(PROJECT, 'node_modules')],
    plugins: [ofThatTime(sources)],
  } satisfies BuildOptions
  const file = (name: string) => path.join(outdir, name)
  const runtime = path.join(sources, 'sdk/runtime')
  await build({ ...common, entryPoints: [`${runtime}/host/main.ts`], outfile: file('host.cjs'), format: 'cjs' })
  await build({ ...common, entryPoints: [`${runtime}/engine/main.ts`], outfile: file('engine.cjs'), format: 'cjs' })
  await build({ ...common, entryPoints: [`${sources}/sdk/index.ts`], outfile: file('windlass.mjs'), format: 'esm' })
  await build({
    ...common,
    entryPoints: [`${sources}/agent/main.ts`],
    outfile: file('agent.mjs'),
    format: 'esm',
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  })
}

/** Rooms import each other by the names of their packages, which would lead into the tree of today. */
function ofThatTime(sources: string): Plugin {
  return {
    name: 'of-that-time',
    setup(plugin) {
      plugin.onResolve({ filter: /^@windlass\/(shared|agent)\// }, ({ path: name }) => ({
        path: path.join(sources, name.replace('@windlass/', '')),
      }))
      plugin.onResolve({ filter: /^windlass\/runtime\// }, ({ path: name }) => ({
        path: path.join(sources, name.replace('windlass/', 'sdk/')),
      }))
      // The runtime of programs is packed; there are no sources of it to build it from.
      plugin.onLoad({ filter: /agent\/run\/runtime-files\.ts$/ }, () => ({
        contents: `export const prepareRuntime = async () => ({
          hostFile: import.meta.dirname + '/host.cjs',
          sdkFile: import.meta.dirname + '/windlass.mjs',
        })`,
      }))
    },
  }
}
