import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { buffer } from 'node:stream/consumers'
import { openFolderStore } from '../../objects/folder.ts'
import { contentKey, digestOfKey } from '../../objects/key.ts'
import type { ObjectStore } from '../../objects/store.ts'

let folder: string
let objects: ObjectStore
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'windlass-objects-'))
  objects = await openFolderStore(folder)
})
after(() => rm(folder, { recursive: true, force: true }))

const keyOf = (bytes: Uint8Array) => contentKey(createHash('sha256').update(bytes).digest('hex'))
const read = async (key: string) => buffer((await objects.stream(key))!)
const unfinished = () => readdir(join(folder, '.unfinished'))

test('what was put can be read, streamed, measured and deleted', async () => {
  const bytes = Buffer.from('content')
  const key = keyOf(bytes)
  assert.match(key, /^sha256\/[0-9a-f]{2}\/[0-9a-f]{64}$/)
  assert.equal((await objects.put(key, bytes)).size, 7)
  assert.deepEqual(await read(key), bytes)
  assert.equal((await objects.stat(key))?.size, 7)
  assert.equal(await objects.delete(key), true)
  assert.equal(await objects.delete(key), false)
  assert.deepEqual(await unfinished(), [])
})

test('the last of the disk is left to the database', async () => {
  const bytes = Buffer.from('one too many')
  const scarce = await openFolderStore(folder, { reserveBytes: Number.MAX_SAFE_INTEGER })
  const refused = {
    code: 'ENOSPC',
    message: /MiB are free on the disk .* make room, or lower WINDLASS_DISK_RESERVE_MB/,
  }
  await assert.rejects(scarce.put(keyOf(bytes), bytes), refused)
  assert.equal(await scarce.stat(keyOf(bytes)), null)
  assert.deepEqual(await unfinished(), [])
  assert.equal((await (await openFolderStore(folder, { reserveBytes: 0 })).put(keyOf(bytes), bytes)).size, bytes.length)
})

test('what is not there is null', async () => {
  const key = keyOf(Buffer.from('absent'))
  assert.deepEqual([await objects.stream(key), await objects.stat(key)], [null, null])
})

test('a part of a key is no object, nor is anything below one', async () => {
  await objects.put('runs/a/b', Buffer.from('x'))
  assert.equal(await objects.stream('runs/a'), null)
  assert.equal(await objects.stat('runs/a'), null)
  assert.equal(await objects.stream('runs/a/b/c'), null)
})

test('a stream is stored chunk by chunk', async () => {
  const chunk = Buffer.alloc(64 * 1024, 7)
  async function* chunks() {
    for (let n = 0; n < 32; n++) yield chunk
  }
  assert.equal((await objects.put('runs/big', chunks())).size, 2 * 1024 * 1024)
  assert.equal((await read('runs/big')).length, 2 * 1024 * 1024)
})

test('a stream that breaks off leaves nothing behind', async () => {
  async function* broken() {
    yield Buffer.from('half')
    throw new Error('line cut')
  }
  await assert.rejects(objects.put('runs/broken', broken()), /line cut/)
  assert.equal(await objects.stat('runs/broken'), null)
  assert.deepEqual(await unfinished(), [])
})

test('content that is not what its key says is not stored', async () => {
  const key = keyOf(Buffer.from('expected'))
  await assert.rejects(objects.put(key, Buffer.from('other')), /has the digest/)
  assert.equal(await objects.stat(key), null)
  assert.deepEqual(await unfinished(), [])
})

test('many puts of one key at once leave one whole object', async () => {
  const bodies = Array.from({ length: 20 }, (_, n) => Buffer.alloc(10_000, n))
  await Promise.all(bodies.map((body) => objects.put('runs/contested', body)))
  const bytes = await read('runs/contested')
  assert.ok(bodies.some((body) => bytes.equals(body)))
  assert.deepEqual(await unfinished(), [])
})

for (const key of [
  '',
  '/etc/passwd',
  '../x',
  'a/../x',
  'a//b',
  'a/',
  '.unfinished/x',
  'a\\b',
  'a\0',
  'a b',
  'x'.repeat(600),
  'a/./b',
]) {
  test(`the key ${JSON.stringify(key.slice(0, 20))} is refused everywhere`, async () => {
    await assert.rejects(objects.put(key, Buffer.from('x')), TypeError)
    await assert.rejects(objects.stream(key), TypeError)
    await assert.rejects(objects.stat(key), TypeError)
    await assert.rejects(objects.delete(key), TypeError)
  })
}

test('only a digest makes a content key', () => {
  assert.throws(() => contentKey('../../x'), TypeError)
  assert.equal(digestOfKey('runs/a'), undefined)
  assert.equal(digestOfKey(`sha256/00/${'a'.repeat(64)}`), undefined)
})

test('what a killed coordinator left unfinished is cleared away later', async () => {
  const [old, young] = ['old', 'young'].map((name) => join(folder, '.unfinished', name))
  for (const path of [old, young]) await writeFile(path ?? '', 'x')
  const longAgo = new Date(Date.now() - 2 * 3_600_000)
  await utimes(old ?? '', longAgo, longAgo)
  await openFolderStore(folder)
  assert.deepEqual(await unfinished(), ['young'])
  await rm(young ?? '')
})
