import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { installScript } from '@windlass/coordinator/downloads/install-script.ts'
import { PROJECT } from '../../tools/source-files.ts'

const VERSION = '1.0.0'
/** Folders that install.sh names, and which are ours here. */
const NAMED = /(\/etc\/\$NAME|\/etc\/systemd|\/opt\/\$NAME|\/var\/lib\/\$NAME|\/usr\/local\/bin|\/run\/systemd)/g
const OURS = 'platform() { echo linux-x64; }; free_uids() { echo 700000-700999; }'
const AGENT = `#!/bin/sh
home=$(sed -n 's/^WINDLASS_AGENT_HOME="\\(.*\\)"/\\1/p' "$WINDLASS_AGENT_CONFIG")
[ "$(cat)" = good ] || exit 1
echo '{"runner":"rnr_1"}' >"$home/identity.json"
`

/** Commands that need root, systemd or a coordinator. @ROOT@ is the top of all folders. */
const COMMANDS = {
  id: 'case $1 in -u) echo 0 ;; -g) echo 65534 ;; *) grep -qx "$1" @ROOT@/users ;; esac',
  useradd: 'for name; do :; done; echo "$name" >>@ROOT@/users',
  userdel: 'grep -vx "$1" @ROOT@/users >@ROOT@/users.new; mv @ROOT@/users.new @ROOT@/users',
  chown: 'echo "$@" >>@ROOT@/chowns',
  curl: 'for name; do case $name in http*) from=${name##*/} ;; /*) to=$name ;; esac; done; cp "@ROOT@/web/$from" "$to"',
  systemctl: `state=@ROOT@/var/lib/windlass-agent/status.json
user=$(sed -n 's/^User=//p' @ROOT@/etc/systemd/system/windlass-agent.service.d/user.conf 2>/dev/null)
case $* in
  *MainPID*) echo 4242 ;;
  is-failed*) [ -e @ROOT@/fails ] ;;
  restart*) echo "$(cat @ROOT@/opt/windlass-agent/current/which) as \${user:-root}" >>@ROOT@/starts
    rm -f "$state"; [ -e @ROOT@/fails ] || echo '{"pid": 4242, "state": "connected"}' >"$state" ;;
esac`,
}

/** Whether install.sh can be called here as it is on a host; it does nothing outside of a folder. */
export const noScriptMachine = process.platform === 'linux' ? false : 'it is for Linux'

/**
 * A folder in which install.sh installs as root under systemd, an agent that is a few lines of shell: fast enough to be
 * stopped at any moment. deploy/e2e/storm/install.test.ts installs the real one.
 */
export class ScriptMachine {
  readonly root = mkdtempSync(join(tmpdir(), 'windlass-script-'))
  readonly config = join(this.root, 'etc/windlass-agent/agent.env')
  readonly state = join(this.root, 'var/lib/windlass-agent')
  readonly dir = join(this.root, 'opt/windlass-agent')

  constructor() {
    for (const folder of ['bin', 'web', 'tmp', 'etc/systemd/system', 'run/systemd/system', 'var/lib', 'opt'])
      mkdirSync(join(this.root, folder), { recursive: true })
    writeFileSync(join(this.root, 'users'), 'nobody\n')
    for (const [name, does] of Object.entries(COMMANDS)) this.command(name, does)
  }

  /** Puts a command before those of the machine. */
  command(name: string, does: string): void {
    writeFileSync(join(this.root, 'bin', name), `#!/bin/sh\n${does.replaceAll('@ROOT@', this.root)}\n`, { mode: 0o755 })
  }

  /** From now on the coordinator hands out this one. */
  serves(which: string): void {
    const name = `windlass-agent-${VERSION}-linux-x64`
    const inside = join(this.root, 'web', name)
    mkdirSync(join(inside, 'bin'), { recursive: true })
    writeFileSync(join(inside, 'bin/node'), '#!/bin/sh\n', { mode: 0o755 })
    writeFileSync(join(inside, 'bin/windlass'), AGENT, { mode: 0o755 })
    writeFileSync(join(inside, 'which'), which)
    cpSync(join(PROJECT, 'deploy/systemd'), join(inside, 'systemd'), { recursive: true })
    cpSync(join(PROJECT, 'deploy/install/uninstall.sh'), join(inside, 'uninstall.sh'))
    const archive = join(this.root, 'web', `${name}.tar.gz`)
    execFileSync('tar', ['-czf', archive, '-C', join(this.root, 'web'), name])
    rmSync(inside, { recursive: true })
    const sum = createHash('sha256').update(readFileSync(archive)).digest('hex')
    writeFileSync(join(this.root, 'web/SHA256SUMS'), `${sum}  ${name}.tar.gz\n`)
  }

  /** Calls install.sh; `before` stands among its functions, and may replace some. */
  async installs(options: string, before = ''): Promise<{ code: number | null; said: string }> {
    const script = (await installScript('http://localhost:1', VERSION))
      .replaceAll(NAMED, `${this.root}$1`)
      .replace('main "$@"', () => `${OURS}\n${before}\nmain "$@"`)
    const env = { PATH: `${join(this.root, 'bin')}:${process.env['PATH']}`, TMPDIR: join(this.root, 'tmp') }
    const child = spawn('sh', ['-s', '--', ...options.split(' ')], { env, stdio: ['pipe', 'pipe', 'pipe'] })
    let said = ''
    for (const out of [child.stdout, child.stderr]) out.on('data', (chunk: Buffer) => (said += chunk.toString()))
    child.stdin.end(script)
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
    return { code, said }
  }

  /** Whether the next start of the service is in vain. */
  startsInVain(isInVain: boolean): void {
    if (isInVain) writeFileSync(join(this.root, 'fails'), '')
    else rmSync(join(this.root, 'fails'), { force: true })
  }

  /** Lines of a file below the root; none where it is missing. */
  lines(file: string): string[] {
    const path = join(this.root, file)
    return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : []
  }

  settings(): Record<string, string> {
    const lines = this.lines('etc/windlass-agent/agent.env').filter((line) => line.startsWith('WINDLASS'))
    return Object.fromEntries(lines.map((line) => line.replaceAll('"', '').split('=') as [string, string]))
  }

  recorded(name: string): string | undefined {
    const line = this.lines('opt/windlass-agent/installed').find((each) => each.startsWith(`${name}=`))
    return line?.slice(name.length + 1)
  }

  /** All below the folders in which it installs. */
  files(): string[] {
    return ['etc', 'opt', 'var'].flatMap((top) =>
      readdirSync(join(this.root, top), { recursive: true, encoding: 'utf8' }),
    )
  }

  versions(): string[] {
    return readdirSync(join(this.dir, 'versions')).map((name) => basename(name))
  }

  remove(): void {
    rmSync(this.root, { recursive: true })
  }
}
