import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { TLSSocket } from 'node:tls'
import { Fault } from '@windlass/shared/errors.ts'
import { aCertificate, whyNoOpenssl } from '@windlass/shared/test/_kit/certificate.ts'
import { isConnectionLoss, isOfOthers, isOfTheValues, mayPass, openDatabase, PostgresError } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'

/** What a statement fails with at a server that answers the first words of each connection like this. */
async function failureAt(t: TestContext, answer: (socket: Socket) => void, query = ''): Promise<unknown> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const own = openDatabase({
    url: `postgres://any:any@localhost:${port}/any${query}`,
    max: 1,
    log,
    statementTimeoutMs: 100,
  })
  t.after(async () => {
    await own.close()
    server.close()
  })
  return own.db`select 1`.then(
    () => assert.fail('nobody is there'),
    (error: unknown) => error,
  )
}

const codeOf = (error: unknown) => (error as { code?: unknown }).code

function assertLost(error: unknown): void {
  assert.deepEqual([isConnectionLoss(error), mayPass(error), isOfTheValues(error)], [true, true, false], String(error))
}

test('a server whose certificate nobody vouches for is one that is not there', { skip: whyNoOpenssl() }, async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-database-tls-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const { key, cert } = aCertificate(folder)
  const answer = (socket: Socket) => {
    socket.write('S')
    new TLSSocket(socket, { isServer: true, key, cert }).on('error', () => {})
  }
  const error = await failureAt(t, answer, '?sslmode=verify-full')
  assert.equal(codeOf(error), 'DEPTH_ZERO_SELF_SIGNED_CERT')
  assertLost(error)
})

test('so is one that speaks no TLS after all', async (t) => {
  const answer = (socket: Socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    socket.write('S')
  }
  const error = await failureAt(t, answer, '?sslmode=require')
  assert.match(String(codeOf(error)), /SSL/)
  assertLost(error)
})

test('so is one that is not who it says', async (t) => {
  // The end of an authentication, as the server says it.
  const [kind, text] = [12, 'v=another']
  const message = Buffer.alloc(9 + text.length)
  message.write('R')
  message.writeInt32BE(8 + text.length, 1)
  message.writeInt32BE(kind, 5)
  message.write(text, 9)
  const error = await failureAt(t, (socket) => socket.write(message))
  assert.equal(codeOf(error), 'SASL_SIGNATURE_MISMATCH')
  assertLost(error)
})

test('a pooler that has no session to lend is named as what it may be', async (t) => {
  // It answers the login itself, with READY at its end, and lets the first statement wait.
  const message = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1')
  const error = await failureAt(t, (socket) => socket.write(message))
  assert.match(String(error), /said nothing for \d+ s .*, from its begin on: a pooler in between may lend too few/)
  assertLost(error)
})

test('values that no statement can be made of are no end of a connection, also where they open it', async (t) => {
  const database = await testDatabase()
  const own = openDatabase({ url: database.url, max: 1, log })
  t.after(async () => {
    await own.close()
    await database.close()
  })
  for (const at of ['first', 'second']) {
    const error = await own.db`select ${undefined as never}`.catch((failure: unknown) => failure)
    assert.equal(codeOf(error), 'UNDEFINED_VALUE')
    assert.deepEqual([isConnectionLoss(error), isOfTheValues(error)], [false, true], at)
  }
  assert.equal((await own.db`select 1 as one`)[0]!.one, 1)
})

const withCode = (code: string, more = {}) => Object.assign(new Error(code), { code, ...more })

test('only what values are refused for is given up for them', () => {
  const ofValues = [
    new TypeError('no number'),
    new RangeError('too long'),
    new Fault('VALIDATION_FAILED'),
    withCode('ERR_INVALID_ARG_TYPE'),
    withCode('MAX_PARAMETERS_EXCEEDED'),
    Object.assign(new PostgresError('null'), { code: '23502' }),
  ]
  for (const error of ofValues) assert.equal(isOfTheValues(error), true, String(error))
  const others = [
    new Fault('UNAVAILABLE'),
    withCode('CERT_HAS_EXPIRED'),
    withCode('ERR_OSSL_EVP_UNSUPPORTED'),
    withCode('ERR_SSL_WRONG_VERSION_NUMBER'),
    withCode('SASL_SIGNATURE_MISMATCH'),
    withCode('EMFILE', { syscall: 'open' }),
    withCode('ANYTHING_NEW'),
    Object.assign(new PostgresError('disk'), { code: '53100' }),
    Object.assign(new Error('stopped'), { name: 'AbortError' }),
  ]
  for (const error of others) assert.equal(isOfTheValues(error), false, String(error))
})

test('a full table of locks is of all sessions, and want of memory may be of one value', () => {
  // As PostgreSQL 18 says it, with 24,600 advisory locks held by another session.
  const locks = { file: 'lock.c', routine: 'LockAcquireExtended', message: 'out of shared memory' }
  assert.equal(isOfOthers(withCode('53200', locks)), true)
  for (const file of ['mcxt.c', 'aset.c', 'stringinfo.c']) assert.equal(isOfOthers(withCode('53200', { file })), false)
  assert.equal(isOfOthers(withCode('53200')), false)
  for (const code of ['53100', '53300', '55P03', '58030', '25006']) assert.equal(isOfOthers(withCode(code)), true, code)
})
