import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { build, type BuildOptions } from 'esbuild'
import { BUILT, DIGEST_FILE, hashOf } from './runtime-digest.ts'

// node build-runtime.ts <sdk/index.ts> <folder>: writes host.cjs, engine.cjs, which it loads when a program waits, and
// windlass.mjs, with their digest. CommonJS starts 2 ms faster than a module.

const [sdkEntry, folder] = process.argv.slice(2)
if (!sdkEntry || !folder) throw new Error('usage: build-runtime.ts <sdk/index.ts> <folder>')

const common = {
  bundle: true,
  platform: 'node',
  target: 'node22',
  minifySyntax: true,
  minifyWhitespace: true,
  charset: 'utf8',
} satisfies BuildOptions

const runtime = path.join(path.dirname(sdkEntry), 'runtime')
for (const [entry, outfile] of [
  ['host/main.ts', 'host.cjs'],
  ['engine/main.ts', 'engine.cjs'],
] as const) {
  await build({
    ...common,
    entryPoints: [path.join(runtime, entry)],
    outfile: path.join(folder, outfile),
    format: 'cjs',
  })
}
await build({ ...common, entryPoints: [sdkEntry], outfile: path.join(folder, 'windlass.mjs'), format: 'esm' })
await writeFile(path.join(folder, DIGEST_FILE), await hashOf(folder, BUILT))
