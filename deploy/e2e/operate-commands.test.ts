// The commands by which operate.md makes a coordinator a service of the system, as they are typed.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { PROJECT } from '../tools/source-files.ts'

/** Commands that stand in for those that need root, a terminal or systemd. */
const OTHERS = {
  sudo: 'exec "$@"',
  editor: '[ -s "$1" ] || echo WINDLASS_DATABASE_URL=postgres://db.example/windlass >"$1"',
  systemctl: 'echo "$@"',
  openssl: 'head -c 32 /dev/urandom | base64',
}

const root = mkdtempSync(join(tmpdir(), 'windlass-operate-'))
after(() => rmSync(root, { recursive: true }))

/** The blocks between "systemd." and "Docker and Kubernetes.", with the machine's folders below `root`. */
function commands(): string {
  const page = readFileSync(join(PROJECT, 'deploy/docs/operate.md'), 'utf8')
  const section = page.slice(page.indexOf('**systemd.**'), page.indexOf('**Docker and Kubernetes.**'))
  const blocks = Array.from(section.matchAll(/^```sh\n([^]*?)^```$/gm), ([, block]) => block)
  assert.equal(blocks.length, 2)
  return blocks.join('').replaceAll(/\/(?:etc|var)\//g, `${root}$&`)
}

function follow(): string {
  const bin = join(root, 'bin')
  for (const folder of [bin, join(root, 'etc/systemd/system'), join(root, 'var/lib/windlass')])
    mkdirSync(folder, { recursive: true })
  mkdirSync(join(root, 'var/lib/private/windlass'), { recursive: true })
  for (const [name, does] of Object.entries(OTHERS))
    writeFileSync(join(bin, name), `#!/bin/sh\n${does}\n`, { mode: 0o755 })
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` }
  return execFileSync('sh', ['-ec', `umask 022\n${commands()}`], { cwd: PROJECT, env, encoding: 'utf8' })
}

test('followed once more, the commands leave the settings of a coordinator and its key of secrets as they are', () => {
  const said = follow()
  assert.match(said, /^enable --now windlass-coordinator$[^]*^restart windlass-coordinator$/m)
  const [settings, key] = [join(root, 'etc/windlass/coordinator.env'), join(root, 'var/lib/windlass/secret.key')]
  const lines = () => new Set(readFileSync(settings, 'utf8').trimEnd().split('\n'))
  const names = ['WINDLASS_DATABASE_URL', 'WINDLASS_SECRET_KEY_FILE']
  assert.deepEqual(
    Array.from(lines(), (line) => line.split('=')[0]),
    names,
  )
  // As with an editor, which would not be used for it once more.
  appendFileSync(settings, 'WINDLASS_BASE_URL=https://windlass.example\n')
  const made = { lines: lines(), key: readFileSync(key, 'utf8') }
  follow()
  assert.deepEqual({ lines: lines(), key: readFileSync(key, 'utf8') }, made)
  for (const file of [settings, key]) assert.equal(statSync(file).mode & 0o777, 0o600)
  const unit = readFileSync(join(root, 'etc/systemd/system/windlass-coordinator.service'), 'utf8')
  assert.match(unit, new RegExp(`^EnvironmentFile=${settings}$`, 'm'))
})
