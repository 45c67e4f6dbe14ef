// What install.sh removes after an upgrade, while programs of the agent before are there.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { installScript } from '@windlass/coordinator/downloads/install-script.ts'

const NEEDS_PROC = existsSync('/proc/self/exe') ? false : 'it needs /proc'
const NEEDS_BUSYBOX = spawnSync('busybox').error ? 'busybox is not installed' : NEEDS_PROC

interface Folder {
  dir: string
  /** Versions that an upgrade from `old` to 1.0 leaves. */
  tidied: (old?: string, from?: string) => string[]
}

/** With these versions; `shell` and its tools do the work. */
async function aFolder(t: TestContext, versions: string[], shell = ['sh']): Promise<Folder> {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-used-version-'))
  t.after(() => rmSync(dir, { recursive: true }))
  for (const version of versions) {
    const bin = join(dir, 'versions', version, 'bin')
    mkdirSync(bin, { recursive: true })
    copyFileSync('/bin/sleep', join(bin, 'sleep'))
  }
  // The script itself does nothing without its last line.
  const functions = (await installScript('https://one.example', '1.0.0')).replace(/main "\$@"\n$/, '')
  const [command, ...args] = shell
  const tidied = (old = '', from = dir) => {
    const variables = `DIR='${from}' TARGET="$DIR/versions/1.0" OLD='${old && `${dir}/versions/${old}`}' MANAGED=yes`
    execFileSync(command!, [...args, '-c', `${functions}\n${variables}; tidy`])
    return readdirSync(join(dir, 'versions')).toSorted()
  }
  return { dir, tidied }
}

async function execute(t: TestContext, file: string): Promise<() => Promise<void>> {
  const program = spawn(file, ['300'], { stdio: 'ignore' })
  const end = async () => {
    program.kill('SIGKILL')
    await exited
  }
  const exited = once(program, 'exit')
  t.after(end)
  await once(program, 'spawn')
  return end
}

test('a version stays as long as programs are executed by its Node', { skip: NEEDS_PROC }, async (t) => {
  const { dir, tidied } = await aFolder(t, ['0.8', '0.9', '1.0'])
  const end = await execute(t, join(dir, 'versions/0.9/bin/sleep'))
  assert.deepEqual(tidied(), ['0.9', '1.0'])
  await end()
  assert.deepEqual(tidied(), ['1.0'])
})

test('so it does where all tools are those of busybox', { skip: NEEDS_BUSYBOX }, async (t) => {
  const tools = mkdtempSync(join(tmpdir(), 'windlass-busybox-'))
  t.after(() => rmSync(tools, { recursive: true }))
  const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim()
  for (const name of execFileSync(busybox, ['--list'], { encoding: 'utf8' }).trim().split('\n'))
    symlinkSync(busybox, join(tools, name))
  const { dir, tidied } = await aFolder(t, ['0.8', '0.9', '1.0'], ['env', `PATH=${tools}`, busybox, 'sh'])
  await execute(t, join(dir, 'versions/0.9/bin/sleep'))
  assert.deepEqual(tidied(), ['0.9', '1.0'])
})

test('and where the folder is called by a link', { skip: NEEDS_PROC }, async (t) => {
  const { dir, tidied } = await aFolder(t, ['0.8', '0.9', '1.0'])
  const named = `${dir}.link`
  symlinkSync(dir, named)
  t.after(() => rmSync(named))
  await execute(t, join(dir, 'versions/0.9/bin/sleep'))
  assert.deepEqual(tidied('', named), ['0.9', '1.0'])
})

test('the package before stays once where the Node is that of the machine, which says of no version', async (t) => {
  const { dir, tidied } = await aFolder(t, ['0.8', '0.9', '1.0'])
  for (const version of readdirSync(join(dir, 'versions')))
    symlinkSync(process.execPath, join(dir, 'versions', version, 'bin/node'))
  assert.deepEqual(tidied('0.9'), ['0.9', '1.0'])
  assert.deepEqual(tidied('1.0'), ['1.0'])
})
