import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { toolPath } from '../../isolation/tools.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_ROOT } from './requirements.ts'

const mayMount = () => spawnSync('unshare', ['-m', 'true']).status === 0
const NEEDS_MOUNTS = NEEDS_ROOT || mayMount() ? false : 'it needs a root that may mount'
const skip = NEEDS_ROOT || NEEDS_BUBBLEWRAP || NEEDS_MOUNTS

/** A bubblewrap that makes a namespace for root alone, as where the kernel gives others none. */
function aClosedBubblewrap(t: TestContext): string {
  const folder = mkdtempSync('/tmp/windlass-closed-')
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o755)
  const [real, closed] = [path.join(folder, 'real'), path.join(folder, 'closed')]
  copyFileSync(toolPath('bwrap') ?? '', real)
  const script = `#!/bin/sh
case " $* " in *" --unshare-user "*)
  [ "$(id -u)" = 0 ] || { echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1; };;
esac
exec ${real} "$@"
`
  writeFileSync(closed, script)
  for (const file of [real, closed]) chmodSync(file, 0o755)
  return closed
}

test('where only root makes namespaces, a program is still nobody but the user of its run', { skip }, async (t) => {
  const closed = aClosedBubblewrap(t)
  const mount = `mount --bind '${closed}' '${realpathSync(toolPath('bwrap') ?? '')}' && exec "$@"`
  const child = path.join(import.meta.dirname, 'in-closed-namespaces.ts')
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', child]
  const args = ['-m', '--propagation', 'private', 'sh', '-c', mount, 'sh', ...node]
  const { stdout } = await promisify(execFile)('unshare', args)
  const { effective, seen, ...outside } = JSON.parse(stdout) as {
    effective: unknown
    seen: { cwd: string }
  }
  assert.deepEqual(effective, { level: 'bubblewrap', user: 'own', cgroup: false, network: 'host' })
  assert.deepEqual(outside, { isSetuid: true, users: 1, left: 0 })
  const { cwd: _, ...inside } = seen
  const expected = { user: 'run', noNewPrivileges: true, canMakeNamespaces: false, namespaces: [] }
  assert.deepEqual(inside, { ...expected, powers: Array(4).fill('0'.repeat(16)) })
})
