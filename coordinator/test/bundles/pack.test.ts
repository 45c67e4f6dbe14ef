import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pack as tarPack } from 'tar-stream'
import { pack } from '../../bundles/pack.ts'
import { unpack } from '../../bundles/unpack.ts'
import { unpacked } from '../_kit/unpacked.ts'
import { filesOf } from '../_kit/workflow-files.ts'

const long = `${'folder/'.repeat(30)}file.ts`
const files = filesOf({ 'b.ts': 'b', 'a/ü.ts': 'Grüezi 👋', 'B.ts': '', [long]: 'x'.repeat(200_000) })

test('what was packed comes back, sorted by path', async () => {
  const { bytes } = await pack(files)
  const found = await unpacked(bytes)
  assert.deepEqual(
    found.map(({ path }) => path),
    ['B.ts', 'a/ü.ts', 'b.ts', long],
  )
  assert.deepEqual(new Set(found), new Set(files))
})

test('the same files give the same bytes, and the digest is theirs', async () => {
  const [one, other] = [await pack(files), await pack(files.toReversed())]
  assert.deepEqual(one, other)
  assert.equal(one.digest, createHash('sha256').update(one.bytes).digest('hex'))
})

test('another content gives another digest', async () => {
  assert.notEqual((await pack(filesOf({ a: '1' }))).digest, (await pack(filesOf({ a: '2' }))).digest)
})

test('a link in a pack is refused', async () => {
  const archive = tarPack()
  archive.entry({ name: 'a', type: 'symlink', linkname: '/etc/passwd' })
  archive.finalize()
  await assert.rejects(unpacked(gzipSync(await buffer(archive))), /`a`, which is no plain file/)
})

test('a pack that swells beyond measure is refused', async () => {
  await assert.rejects(unpacked(gzipSync(Buffer.alloc(100 * 1024 * 1024))), /more than 83886080 bytes/)
})

test('a pack that is cut short, or is none, is refused', async () => {
  const { bytes } = await pack(files)
  for (const broken of [bytes.subarray(0, bytes.length / 2), Buffer.from('no pack'), gzipSync(Buffer.alloc(100, 'x'))])
    await assert.rejects(unpacked(broken))
})

test('who leaves early has nothing unpacked of what follows', async () => {
  const many = filesOf({ a: 'a', b: 'x'.repeat(20 * 1024 * 1024), c: 'c' })
  let pieces = 0
  const source = Readable.from([(await pack(many)).bytes])
  for await (const file of unpack(source, async () => void pieces++)) {
    assert.equal(file.path, 'a')
    break
  }
  assert.ok(pieces <= 2, `${pieces} pieces`)
  assert.ok(source.destroyed)
})
