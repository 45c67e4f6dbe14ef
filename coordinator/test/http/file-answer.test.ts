import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { within } from '@windlass/shared/time.ts'
import { FileAnswer } from '../../api/call.ts'
import { untilPolled } from '../_kit/until.ts'
import { type StubServer, startStub } from './stub-server.ts'

const PATH = '/downloads/large'
// More than a socket takes at once.
const BYTES = randomBytes(24 * 1024 * 1024)
let folder: string
let file: string
let server: StubServer | undefined

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'windlass-file-answer-'))
  file = join(folder, 'large')
  await writeFile(file, BYTES)
})

after(() => rm(folder, { recursive: true }))

afterEach(async () => {
  await server?.close()
  server = undefined
})

async function serving(path = file, stallMs?: number): Promise<StubServer> {
  const download = () => new FileAnswer(path, 'application/gzip', '"of-the-file"')
  return (server = await startStub({ handlers: { 'service.download': download }, stallMs }))
}

test('a download that gives way is cut, which its reader notices, and has left its seat', async () => {
  const giveWay: (() => void)[] = []
  let left = 0
  const takeSeat = (mine: () => void) => {
    giveWay.push(mine)
    return { took: () => {}, leave: () => void left++ }
  }
  const download = () => new FileAnswer(file, 'application/gzip', '"of-the-file"', takeSeat)
  server = await startStub({ handlers: { 'service.download': download } })
  const slow = await fetch(server.url + PATH)
  assert.equal(slow.status, 200)
  giveWay[0]!()
  await assert.rejects(slow.arrayBuffer())
  await untilPolled('the seat to be free', () => Promise.resolve(left === 1))
})

test('a download has a seat, told what is taken, until it ends or its reader leaves; or is refused', async () => {
  let free = 1
  let taken = 0
  const takeSeat = () => {
    if (free === 0) throw new Fault('UNAVAILABLE')
    free--
    taken = 0
    return { took: (bytes: number) => void (taken += bytes), leave: () => void free++ }
  }
  const download = () => new FileAnswer(file, 'application/gzip', '"of-the-file"', takeSeat)
  server = await startStub({ handlers: { 'service.download': download } })
  const { url } = server
  const leaving = new AbortController()
  const slow = await fetch(url + PATH, { signal: leaving.signal })
  assert.equal(slow.status, 200)
  const refused = await fetch(url + PATH)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
  assert.equal((await fetch(url + PATH, { method: 'HEAD' })).status, 200)
  leaving.abort()
  await untilPolled('the seat to be free', () => Promise.resolve(free === 1))
  assert.equal((await (await fetch(url + PATH)).arrayBuffer()).byteLength, BYTES.length)
  await untilPolled('the seat to be free', () => Promise.resolve(free === 1))
  assert.equal(taken, BYTES.length)
})

/** How often this process has the file open. */
async function timesOpen(): Promise<number> {
  const descriptors = await readdir('/proc/self/fd')
  const files = descriptors.map((descriptor) => readlink(join('/proc/self/fd', descriptor)).catch(() => ''))
  return (await Promise.all(files)).filter((each) => each === file).length
}

test('a file goes out whole, with its length, and is closed', async () => {
  const { url } = await serving()
  const response = await fetch(url + PATH)
  assert.equal(response.headers.get('content-length'), String(BYTES.length))
  assert.equal(response.headers.get('etag'), '"of-the-file"')
  assert.ok(Buffer.from(await response.arrayBuffer()).equals(BYTES))
  await untilPolled('it is closed', async () => (await timesOpen()) === 0)
})

test('HEAD tells the length and sends nothing', async () => {
  const { url } = await serving()
  const response = await fetch(url + PATH, { method: 'HEAD' })
  assert.equal(response.headers.get('content-length'), String(BYTES.length))
  assert.equal((await response.arrayBuffer()).byteLength, 0)
})

test('who has the file already is told so', async () => {
  const { url } = await serving()
  const response = await fetch(url + PATH, { headers: { 'if-none-match': '"of-the-file"' } })
  assert.equal(response.status, 304)
})

test('a reader that takes nothing is cut, and one that goes away leaves nothing open', async () => {
  const { port } = await serving(file, 200)
  const stalled = connect(port, '127.0.0.1')
  stalled.on('error', () => {})
  stalled.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await untilPolled('it is being sent', async () => (await timesOpen()) > 0)
  await untilPolled('it was given up', async () => (await timesOpen()) === 0)
  const closed = once(stalled, 'close')
  stalled.resume()
  await within(60_000, closed, 'the connection stays open')

  const leaving = connect(port, '127.0.0.1')
  leaving.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await once(leaving, 'data')
  leaving.destroy()
  await untilPolled('it is closed', async () => (await timesOpen()) === 0)
})

test('a file that has gone is an error that is answered', async () => {
  const { url, logged } = await serving(join(folder, 'gone'))
  const response = await fetch(url + PATH)
  assert.equal(response.status, 500)
  assert.ok(logged.some(({ level }) => level === 'error'))
})

const RANGES: readonly [range: string, expected: [status: number, contentRange: string | null, bytes: Buffer]][] = [
  ['bytes=10-19', [206, `bytes 10-19/${BYTES.length}`, BYTES.subarray(10, 20)]],
  ['bytes=25165800-', [206, `bytes 25165800-25165823/${BYTES.length}`, BYTES.subarray(25_165_800)]],
  ['bytes=25165800-99999999', [206, `bytes 25165800-25165823/${BYTES.length}`, BYTES.subarray(25_165_800)]],
  ['bytes=-4', [206, `bytes 25165820-25165823/${BYTES.length}`, BYTES.subarray(-4)]],
  ['bytes=0-0', [206, `bytes 0-0/${BYTES.length}`, BYTES.subarray(0, 1)]],
  ['bytes=19-10', [200, null, BYTES]],
  ['bytes=0-1,5-6', [200, null, BYTES]],
  ['lines=1-2', [200, null, BYTES]],
]

for (const [range, [status, contentRange, bytes]] of RANGES)
  test(`a part of a file: ${range}`, async () => {
    const { url } = await serving()
    const response = await fetch(url + PATH, { headers: { range } })
    assert.deepEqual([response.status, response.headers.get('content-range')], [status, contentRange])
    assert.equal(response.headers.get('accept-ranges'), 'bytes')
    assert.equal(response.headers.get('content-length'), String(bytes.length))
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(bytes))
  })

test('a part that begins behind the end is refused with the size, and takes no seat', async () => {
  let seats = 0
  const takeSeat = () => {
    seats++
    return { took: () => {}, leave: () => {} }
  }
  const download = () => new FileAnswer(file, 'application/gzip', '"of-the-file"', takeSeat)
  server = await startStub({ handlers: { 'service.download': download } })
  for (const range of [`bytes=${BYTES.length}-`, 'bytes=-0']) {
    const response = await fetch(server.url + PATH, { headers: { range } })
    assert.deepEqual([response.status, response.headers.get('content-range')], [416, `bytes */${BYTES.length}`])
    const { error } = (await response.json()) as { error: { code: string } }
    assert.equal(error.code, 'RANGE_NOT_SATISFIABLE')
  }
  assert.equal(seats, 0)
})

test('a part of a file that has changed meanwhile is the whole of the new one', async () => {
  const { url } = await serving()
  const parts = ['"of-the-file"', '"of-another"', 'W/"of-the-file"'].map(async (etag) => {
    const response = await fetch(url + PATH, { headers: { range: 'bytes=5-', 'if-range': etag } })
    await response.arrayBuffer()
    return response.status
  })
  assert.deepEqual(await Promise.all(parts), [206, 200, 200])
})
