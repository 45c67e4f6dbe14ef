import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export interface RuntimeFiles {
  /** What a program's process starts with. */
  hostFile: string
  /** What a program gets for `import 'windlass'`. */
  sdkFile: string
}

/**
 * The program's side as plain JavaScript: stripping types at each start would cost 40 ms. Built at the agent's start, kept in a
 * folder named after its content, so that an agent of another version finds its own.
 */
export async function prepareRuntime(folder: string): Promise<RuntimeFiles> {
  const [host, sdk] = await build()
  const name = createHash('sha256').update(host).update('\0').update(sdk).digest('hex').slice(0, 16)
  const home = path.join(folder, name)
  await fs.mkdir(home, { recursive: true, mode: 0o755 })
  const files = { hostFile: path.join(home, 'host.cjs'), sdkFile: path.join(home, 'windlass.mjs') }
  await Promise.all([place(files.hostFile, host), place(files.sdkFile, sdk)])
  return files
}

async function build(): Promise<[host: string, sdk: string]> {
  const sdkEntry = fileURLToPath(import.meta.resolve('windlass'))
  const hostEntry = path.join(path.dirname(sdkEntry), 'runtime/host/main.ts')
  // Loaded here only: the agent is to be small once it runs.
  const { buildSync } = await import('esbuild')
  const bundle = (entry: string, format: 'cjs' | 'esm') =>
    buildSync({
      entryPoints: [entry],
      bundle: true,
      write: false,
      format,
      platform: 'node',
      target: 'node22',
      minifySyntax: true,
      minifyWhitespace: true,
      charset: 'utf8',
    }).outputFiles[0]?.text ?? ''
  return [bundle(hostEntry, 'cjs'), bundle(sdkEntry, 'esm')]
}

/** Another agent of this host may be doing the same: a rename is all or nothing. */
async function place(file: string, text: string): Promise<void> {
  const present = await fs.readFile(file, 'utf8').catch(() => null)
  if (present === text) return
  const draft = `${file}.${process.pid}`
  await fs.writeFile(draft, text, { mode: 0o644 })
  await fs.rename(draft, file)
}
