// Imports every dependency that a package.json declares, from the room that declares it. `npm ls` can be content with a
// tree whose packages lack their own dependencies; only loading them tells.
import { execFile } from 'node:child_process'
import path from 'node:path'
import { readPackages } from './packages.ts'
import type { Declared } from './packages.ts'
import { PROJECT } from './source-files.ts'

/** Five seconds on an idle machine; a busy one takes ten times as long. */
const DEADLINE_MS = 180_000

/**
 * Runs in a process of its own, in the room's folder, so that names are resolved as the room's files resolve them. Of a
 * package that exports parts only, or whose main file its authors left out, a part is loaded; one that has nothing to
 * load is a command, whose file has to be there.
 */
const PROBE = `
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
const require = createRequire(join(process.cwd(), 'probe.js'))
const failures = {}
async function load(name) {
  const folder = require.resolve.paths(name).map((path) => join(path, name)).find((path) => existsSync(path))
  if (folder === undefined) throw new Error('it is not installed')
  const { exports, main, bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (exports === undefined && main === undefined && bin !== undefined && !existsSync(join(folder, 'index.js'))) {
    const absent = (typeof bin === 'string' ? [bin] : Object.values(bin)).find((file) => !existsSync(join(folder, file)))
    if (absent !== undefined) throw new Error('its command ' + absent + ' is missing')
    return
  }
  const parts = typeof exports === 'object' ? Object.keys(exports).filter((key) => key.startsWith('./') && !key.includes('*')) : []
  const hasMain = parts.length === 0 || '.' in exports
  try {
    await import(hasMain ? name : name + parts[0].slice(1))
  } catch (error) {
    const isLeftOut = hasMain && parts.length > 0 && String(error.message).startsWith("Cannot find module '" + folder)
    if (!isLeftOut) throw error
    await import(name + parts[0].slice(1))
  }
}
for (const name of process.argv.slice(1)) {
  try { await load(name) } catch (error) { failures[name] = error instanceof Error ? error.message : String(error) }
}
process.stdout.write(JSON.stringify(failures), () => process.exit(0))
`

export interface Broken {
  readonly room: string
  readonly name: string
  readonly reason: string
}

export async function brokenDependencies(root: string): Promise<Broken[]> {
  const declared = readPackages(root).declared.filter(isLoadable)
  const rooms = [...new Set(declared.map((d) => d.room))]
  const found = await Promise.all(rooms.map((room) => probe(root, room, declared)))
  return found.flat()
}

async function probe(root: string, room: string, declared: readonly Declared[]): Promise<Broken[]> {
  const names = declared.filter((d) => d.room === room).map((d) => d.name)
  const failures = await load(path.join(root, room), names)
  return Object.entries(failures).map(([name, reason]) => ({ room, name, reason }))
}

/**
 * Left out: types (nothing to load), packages for another platform, our own rooms (every start loads them), and the
 * root's command line tools (the other steps run them).
 */
function isLoadable({ name, room, optional, isWorkspace }: Declared): boolean {
  if (isWorkspace || name.startsWith('@types/')) return false
  if (room === '') return name === 'nock'
  return !optional || name.endsWith(`${process.platform}-${process.arch}`)
}

function load(cwd: string, names: readonly string[]): Promise<Record<string, string>> {
  const args = ['--input-type=module', '--eval', PROBE, ...names]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd, timeout: DEADLINE_MS, encoding: 'utf8' }, (error, stdout, stderr) => {
      if (error) reject(new Error(`loading ${names.join(', ')} in ${cwd} failed: ${error.message}\n${stderr}`))
      else resolve(JSON.parse(stdout) as Record<string, string>)
    })
  })
}

if (process.argv[1] === import.meta.filename) {
  const broken = await brokenDependencies(PROJECT)
  for (const b of broken) {
    console.log(`${b.room || 'the root'}: \`${b.name}\` is declared and does not load; run \`npm ci\`\n  ${b.reason}`)
  }
  process.exitCode = broken.length > 0 ? 1 : 0
}
