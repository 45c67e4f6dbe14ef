import { mkdir, mkdtemp, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { SdkPackages } from '@windlass/shared/model/sdk-packages.ts'
import manifest from '../package.json' with { type: 'json' }
import { type Entry, writeArchive } from './archive.ts'
import { cliPackage, sdkPackage } from './npm-packages.ts'

// node build-packages.ts <folder>: makes the packages for npm of this version, each under a name with the digest of its
// bytes, and prints their names as JSON.

/** Lockfiles name them: as long as that after it was last made, an earlier one is still handed out. */
const SERVED_MS = 180 * 24 * 3_600_000
/** What is older and not finished was cut short. */
const DRAFT_MS = 3_600_000
const DIGITS = 16

export async function buildPackages(home: string): Promise<SdkPackages> {
  await mkdir(home, { recursive: true })
  const work = await mkdtemp(join(home, 'work-'))
  try {
    const add = async (name: string, entries: Entry[]) => {
      const draft = join(work, name)
      const sha256 = await writeArchive(draft, 'package', entries)
      const file = `${name}-${manifest.version}-${sha256.slice(0, DIGITS)}.tgz`
      await utimes(draft, new Date(), new Date())
      await flush(draft)
      await rename(draft, join(home, file))
      return file
    }
    const windlass = await add('windlass', await sdkPackage())
    const cli = await add('windlass-cli', await cliPackage())
    await removeOld(home)
    return { version: manifest.version, files: { windlass, 'windlass-cli': cli } }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** A name promises its bytes, so they are on the disk before it is. */
async function flush(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

async function removeOld(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    const path = join(home, name)
    // Another coordinator may have tidied up at the same moment.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }))
    const servedMs = name.endsWith('.tgz') ? SERVED_MS : DRAFT_MS
    if (Date.now() - mtimeMs > servedMs) await rm(path, { recursive: true, force: true })
  }
}

if (process.argv[1] === import.meta.filename) {
  const [home] = process.argv.slice(2)
  if (!home) throw new Error('usage: build-packages.ts <folder>')
  process.stdout.write(`${JSON.stringify(await buildPackages(home))}\n`)
}
