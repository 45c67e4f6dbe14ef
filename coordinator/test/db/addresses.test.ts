// The database has a host name, and DNS answers late, not at all, or otherwise than before.
import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, test, type TestContext } from 'node:test'
import { TLSSocket } from 'node:tls'
import type { Pool } from 'pg'
import { type Addresses, type AddressesOptions, createAddresses } from '../../db/addresses.ts'
import { type Db, isConnectionLoss, openDatabase, openPgPool } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'
import { untilPolled } from '../_kit/until.ts'
import { targetOf } from '../_kit/way.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let host: Host
let url: string

before(async () => {
  database = await testDatabase()
  host = await aHostAt('127.0.0.1')
  const named = new URL(database.url)
  named.searchParams.delete('host')
  named.host = `db.test:${host.port}`
  url = named.href
})
after(async () => {
  host.close()
  await database.close()
})

type Host = Awaited<ReturnType<typeof aHostAt>>

/** The database answers at this address. */
async function aHostAt(address: string, port = 0) {
  const open = new Set<Socket>()
  let count = 0
  const cut = () => open.forEach((socket) => socket.destroy())
  const server = createServer((near) => {
    const far = connect(targetOf(database.url))
    count += 1
    for (const socket of [near, far]) {
      open.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => [near, far].forEach((each) => (open.delete(each), each.destroy())))
    }
    near.pipe(far).pipe(near)
  })
  server.listen(port, address)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    count: () => count,
    /** All that is open is lost. */
    cut,
    close() {
      server.close()
      cut()
    },
  }
}

const ipv4 = (...addresses: string[]): LookupAddress[] => addresses.map((address) => ({ address, family: 4 }))
const failure = (code: string) => Object.assign(new Error(`getaddrinfo ${code} db.test`), { code })

/** A DNS that answers when the test says so: the oldest look-up first. */
function aDns() {
  const waiting: PromiseWithResolvers<LookupAddress[]>[] = []
  let calls = 0
  const nextOne = () => untilPolled('a look-up', () => waiting.shift())
  return {
    lookup: () => {
      calls += 1
      const call = Promise.withResolvers<LookupAddress[]>()
      waiting.push(call)
      return call.promise
    },
    calls: () => calls,
    answer: async (...addresses: string[]) => (await nextOne()).resolve(ipv4(...addresses)),
    fail: async (code: string) => (await nextOne()).reject(failure(code)),
  }
}

/** Nothing is kept, and nobody waits for an answer where there is one of before. */
const HASTY: AddressesOptions = { freshMs: 0, patienceMs: 0, againMs: 10 }

function aPool(t: TestContext, addresses: Addresses, { max = 1, connectTimeoutS = 60, at = url } = {}) {
  const pool = openDatabase({ url: at, max, log, connectTimeoutS, addresses })
  t.after(() => pool.close())
  return pool.db
}

function aPgPool(t: TestContext, addresses: Addresses, { max = 1, at = url } = {}) {
  const pool = openPgPool(at, { max, log, addresses })
  t.after(() => pool.end())
  return pool
}

const pidOf = async (db: Db) => (await db<[{ pid: number }]>`select pg_backend_pid() as pid`)[0].pid

const pidOfPg = async (pool: Pool) => (await pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]!.pid

test('all connections that wait for a host look it up once', async (t) => {
  const dns = aDns()
  const addresses = createAddresses({ lookup: dns.lookup })
  let asked = 0
  const counting: Addresses = { lookupFor: (...args) => ((asked += 1), addresses.lookupFor(...args)) }
  const db = aPool(t, counting, { max: 10 })
  const pg = aPgPool(t, counting, { max: 10 })
  const all = Promise.all([
    ...Array.from({ length: 10 }, () => db`select pg_sleep(0.1)`.execute()),
    ...Array.from({ length: 10 }, () => pg.query('select pg_sleep(0.1)')),
  ])
  await untilPolled('all to ask', () => asked === 20)
  await dns.answer('127.0.0.1')
  await all
  assert.equal(dns.calls(), 1)
})

test('a look-up goes on when those who waited for it give up, and serves the next ones', async (t) => {
  const dns = aDns()
  const db = aPool(t, createAddresses({ lookup: dns.lookup, freshMs: 600_000 }), { connectTimeoutS: 0.3 })
  for (let i = 0; i < 3; i++) await assert.rejects(pidOf(db), isConnectionLoss)
  assert.equal(dns.calls(), 1)
  await dns.answer('127.0.0.1')
  await untilPolled('a connection', () => pidOf(db).catch(() => undefined))
  assert.equal(dns.calls(), 1)
})

test('while DNS takes long or fails, the addresses of its last answer are tried', async (t) => {
  const dns = aDns()
  const addresses = createAddresses({ ...HASTY, lookup: dns.lookup })
  const db = aPool(t, addresses)
  const pg = aPgPool(t, addresses)
  const pids = () => Promise.all([pidOf(db), pidOfPg(pg)])
  const renewed = async () => {
    const before = await pids()
    host.cut()
    await untilPolled('new connections', async () => {
      const next = await pids().catch(() => before)
      return next.every((pid) => !before.includes(pid))
    })
  }
  const first = pids()
  await dns.answer('127.0.0.1')
  await first
  await renewed()
  assert.equal(dns.calls(), 2, 'both wait for the same one')
  await dns.fail('EAI_AGAIN')
  await renewed()
  // It looks until it has an answer.
  await dns.fail('EAI_AGAIN')
  const now = await pids()
  await dns.answer('127.0.0.1')
  assert.deepEqual(await pids(), now, 'the answer is the same: nothing is cut')
})

test('a host that DNS no longer knows is not sought where it was', async (t) => {
  const dns = aDns()
  const db = aPool(t, createAddresses({ ...HASTY, patienceMs: 600_000, lookup: dns.lookup }))
  const first = pidOf(db)
  await dns.answer('127.0.0.1')
  await first
  host.cut()
  const refused = untilPolled('a refusal', () =>
    pidOf(db).then(
      () => undefined,
      (error: unknown) => isConnectionLoss(error) && (error as { code?: string }).code === 'ENOTFOUND',
    ),
  )
  await dns.fail('ENOTFOUND')
  await refused
})

test('after a failover by DNS connections to the host of before are ended, and new ones go to the other', async (t) => {
  const standby = await aHostAt('127.0.0.2', host.port)
  t.after(() => standby.close())
  const dns = aDns()
  const db = aPool(t, createAddresses({ ...HASTY, lookup: dns.lookup }))
  const first = pidOf(db)
  await dns.answer('127.0.0.1')
  const before = await first
  host.cut()
  // The former host is there still, and DNS says nothing yet.
  await untilPolled('a connection', () =>
    pidOf(db)
      .then((pid) => pid !== before)
      .catch(() => false),
  )
  assert.equal(standby.count(), 0)
  await dns.answer('127.0.0.2')
  await untilPolled('a connection to the other', () =>
    pidOf(db)
      .then(() => standby.count() > 0)
      .catch(() => false),
  )
})

test('an answer that comes soon is tried before the addresses of the last one', async (t) => {
  const standby = await aHostAt('127.0.0.2', host.port)
  t.after(() => standby.close())
  const dns = aDns()
  const db = aPool(t, createAddresses({ freshMs: 0, patienceMs: 600_000, lookup: dns.lookup }))
  const first = pidOf(db)
  await dns.answer('127.0.0.1')
  await first
  const before = host.count()
  host.cut()
  const next = untilPolled('a connection', () => pidOf(db).catch(() => undefined))
  await dns.answer('127.0.0.2')
  await next
  assert.deepEqual([standby.count(), host.count()], [1, before])
})

test('of several addresses each is tried', async (t) => {
  const addresses = createAddresses({
    lookup: async () => [...ipv4('127.0.0.9'), { address: '100::1', family: 6 }, ...ipv4('127.0.0.1')],
  })
  await aPool(t, addresses)`select 1`
  await aPgPool(t, addresses).query('select 1')
})

test('a server is asked for its certificate by the name of the host', async (t) => {
  const names: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    // What asks for TLS.
    socket.once('data', () => {
      const SNICallback = (name: string, done: (error: Error) => void) => (names.push(name), done(new Error('none')))
      socket.write('S')
      new TLSSocket(socket, { isServer: true, SNICallback }).on('error', () => socket.destroy())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const at = `postgres://any@db.test:${port}/any?sslmode=verify-full`
  const addresses = createAddresses({ lookup: async () => ipv4('127.0.0.1') })
  await assert.rejects(async () => aPool(t, addresses, { at })`select 1`)
  await assert.rejects(aPgPool(t, addresses, { at }).query('select 1'))
  assert.deepEqual(names, ['db.test', 'db.test'])
})
