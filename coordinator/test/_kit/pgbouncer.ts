import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aWay } from './way.ts'

/** Why there is no pooler here, or false. */
export function whyNoPgbouncer(): string | false {
  return spawnSync('pgbouncer', ['--version']).status === 0 ? false : 'pgbouncer is not installed'
}

// It does not run as root.
const NOBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

/** PgBouncer in front of a database. */
export async function aPgbouncer(url: string, mode: 'session' | 'transaction' | 'statement') {
  const way = await aWay(url)
  const { port, username, password, pathname } = new URL(way.url)
  const folder = await mkdtemp(join(tmpdir(), 'windlass-pooler-'))
  const config = join(folder, 'pgbouncer.ini')
  await writeFile(
    config,
    [
      '[databases]',
      `* = host=127.0.0.1 port=${port} user=${username} password=${decodeURIComponent(password)}`,
      '[pgbouncer]',
      `unix_socket_dir = ${folder}`,
      'listen_port = 6432',
      'auth_type = any',
      `pool_mode = ${mode}`,
      'default_pool_size = 40',
    ].join('\n'),
  )
  await chmod(config, 0o644)
  if (NOBODY.uid !== undefined) await chown(folder, NOBODY.uid, NOBODY.gid)
  const child = spawn('pgbouncer', ['-q', config], { ...NOBODY, stdio: 'ignore' })
  const ended = once(child, 'exit')
  await untilPolled('the pooler', () => existsSync(join(folder, '.s.PGSQL.6432')))
  return {
    url: `postgres://${username}@localhost:6432${pathname}?host=${encodeURIComponent(folder)}`,
    async close() {
      child.kill('SIGKILL')
      await ended
      way.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
