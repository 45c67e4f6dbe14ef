import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { buffer } from 'node:stream/consumers'
import { pack as tarPack } from 'tar-stream'
import { pack, unpackInMemory } from '../../bundles/pack.ts'
import { filesOf } from '../_kit/workflow-files.ts'

const long = `${'folder/'.repeat(30)}file.ts`
const files = filesOf({ 'b.ts': 'b', 'a/ü.ts': 'Grüezi 👋', 'B.ts': '', [long]: 'x'.repeat(200_000) })

test('what was packed comes back, sorted by path', async () => {
  const { bytes } = await pack(files)
  const unpacked = await unpackInMemory(bytes)
  assert.deepEqual(
    unpacked.map(({ path }) => path),
    ['B.ts', 'a/ü.ts', 'b.ts', long],
  )
  assert.deepEqual(new Set(unpacked), new Set(files))
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
  await assert.rejects(unpackInMemory(gzipSync(await buffer(archive))), /`a`, which is no plain file/)
})

test('a pack that swells beyond measure is refused', async () => {
  await assert.rejects(unpackInMemory(gzipSync(Buffer.alloc(100 * 1024 * 1024))), { code: 'ERR_BUFFER_TOO_LARGE' })
})
