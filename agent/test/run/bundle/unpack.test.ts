import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { BadBundle, unpack } from '../../../run/bundle/unpack.ts'
import { aFolder } from '../../_kit/an-agent.ts'
import { aBundle, packed } from '../../_kit/bundle.ts'

interface RawEntry {
  name: string
  content?: Buffer | string
  /** `0` file, `1` hard link, `2` symbolic link, `3` and `4` devices, `5` folder, `6` pipe. */
  type?: string
  linkname?: string
  /** What the header says, when that is not the length of the content. */
  size?: number
}

/** A tar by hand: a library would refuse to write most of these. */
function rawTar(entries: RawEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? '')
    const padding = Buffer.alloc((512 - (content.length % 512)) % 512)
    return [header(entry, content.length), content, padding]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

function header({ name, type = '0', linkname = '', size }: RawEntry, length: number): Buffer {
  const block = Buffer.alloc(512)
  block.write(name, 0, 100)
  block.write('0000644\0', 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  block.write(`${(size ?? length).toString(8).padStart(11, '0')}\0`, 124)
  block.write('00000000000\0', 136)
  block.write('        ', 148)
  block.write(type, 156)
  block.write(linkname, 157, 100)
  block.write('ustar\0', 257)
  block.write('00', 263)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

async function unpackInto(bytes: Buffer, limits?: Parameters<typeof unpack>[2]) {
  const { folder, remove } = await aFolder()
  const target = path.join(folder, 'inside')
  await mkdir(target)
  try {
    const digest = await unpack(Readable.from([bytes]), target, limits)
    const names = await readdir(target, { recursive: true })
    return { digest, names: names.sort(), outside: await readdir(folder), read: await readAll(target, names) }
  } finally {
    await remove()
  }
}

async function readAll(folder: string, names: string[]): Promise<Record<string, string>> {
  const texts: Record<string, string> = {}
  for (const name of names) {
    const file = path.join(folder, name)
    if ((await stat(file)).isFile()) texts[name] = await readFile(file, 'utf8')
  }
  return texts
}

test('files and folders come out as they went in, and the digest is that of the packed bytes', async () => {
  const bundle = await aBundle({ 'main.mjs': 'export {}', 'deep/er/one.txt': 'ü', 'empty.txt': '' })
  const found = await unpackInto(bundle.packed)
  assert.equal(found.digest, bundle.digest)
  assert.deepEqual(found.read, { 'main.mjs': 'export {}', 'deep/er/one.txt': 'ü', 'empty.txt': '' })
})

test('a name of any length that the format knows comes out whole', async () => {
  const name = `${'folder-of-some-length/'.repeat(9)}ünï-${'n'.repeat(80)}.txt`
  const found = await unpackInto((await aBundle({ [name]: 'x' })).packed)
  assert.deepEqual(found.read, { [name]: 'x' })
})

const attacks: [string, RawEntry[], RegExp][] = [
  ['an absolute path', [{ name: '/tmp/windlass-attack', content: 'x' }], /absolute/],
  ['a path that climbs out', [{ name: '../outside.txt', content: 'x' }], /leads out/],
  ['a path that climbs out from below', [{ name: 'a/b/../../../outside.txt', content: 'x' }], /leads out/],
  ['backslashes', [{ name: '..\\outside.txt', content: 'x' }], /forbidden character/],
  ['a symbolic link', [{ name: 'link', type: '2', linkname: '/etc/passwd' }], /symlink/],
  ['a hard link', [{ name: 'link', type: '1', linkname: '/etc/passwd' }], /is a link/],
  [
    'a write through a symbolic link',
    [
      { name: 'l', type: '2', linkname: '..' },
      { name: 'l/outside.txt', content: 'x' },
    ],
    /symlink/,
  ],
  ['a character device', [{ name: 'null', type: '3' }], /character-device/],
  ['a block device', [{ name: 'disk', type: '4' }], /block-device/],
  ['a pipe', [{ name: 'pipe', type: '6' }], /fifo/],
  [
    'one name twice',
    [
      { name: 'a.txt', content: '1' },
      { name: 'a.txt', content: '2' },
    ],
    /twice/,
  ],
  [
    'one name twice by detour',
    [
      { name: 'a.txt', content: '1' },
      { name: './/a.txt', content: '2' },
    ],
    /twice/,
  ],
  [
    'one name in two cases',
    [
      { name: 'a.txt', content: '1' },
      { name: 'A.TXT', content: '2' },
    ],
    /twice/,
  ],
  ['a folder with content', [{ name: 'd/', type: '5', content: 'hello' }], /"d\/" is a folder with content/],
  [
    'a file below a file',
    [
      { name: 'a', content: '1' },
      { name: 'a/b', content: '2' },
    ],
    /"a\/b" is below a file/,
  ],
  [
    'a file far below a file',
    [
      { name: 'a', content: '1' },
      { name: 'a/b/c', content: '2' },
    ],
    /"a\/b\/c" is below a file/,
  ],
  [
    'a folder below a file',
    [
      { name: 'a', content: '1' },
      { name: 'a/b/', type: '5' },
    ],
    /"a\/b\/" is below a file/,
  ],
  [
    'a file in the place of a folder',
    [
      { name: 'a/b', content: '1' },
      { name: 'a', content: '2' },
    ],
    /"a" is a file and a folder/,
  ],
  ['a file without a name', [{ name: './', content: 'x' }], /no name/],
]
for (const [what, entries, expected] of attacks) {
  test(`${what} is refused`, async () => {
    const refused = (error: unknown) => error instanceof BadBundle && expected.test(error.message)
    await assert.rejects(unpackInto(gzipSync(rawTar(entries))), refused)
  })
}

test('what is refused is refused before its source ends, and the source is let go', async () => {
  const source = new Readable({ read: () => undefined })
  source.push(gzipSync(rawTar([{ name: 'd/', type: '5', content: 'hello' }])))
  const { folder, remove } = await aFolder()
  try {
    await assert.rejects(unpack(source, folder), BadBundle)
    assert.equal(source.destroyed, true)
  } finally {
    await remove()
  }
})

test('what goes wrong otherwise is told as it is, and not as the stream that was cut by it', async () => {
  const { folder, remove } = await aFolder()
  try {
    // No file can be opened below this: neither a rule nor what a host has too little of.
    const missing = path.join(folder, 'no\0folder')
    const bundle = await aBundle({ 'a.txt': 'x' })
    await assert.rejects(unpack(Readable.from([bundle.packed]), missing), { code: 'ERR_INVALID_ARG_VALUE' })
  } finally {
    await remove()
  }
})

test('an archive that ends too early is refused', async () => {
  await assert.rejects(unpackInto(gzipSync(rawTar([{ name: 'a', content: 'x', size: 5000 }]).subarray(0, 1000))))
  const whole = (await aBundle({ 'a.txt': randomBytes(5000).toString('hex') })).packed
  await assert.rejects(unpackInto(whole.subarray(0, whole.length - 20)))
})

test('what is no archive is refused', async () => {
  await assert.rejects(unpackInto(Buffer.from('hello')))
  await assert.rejects(unpackInto(gzipSync(randomBytes(4096))))
})

test('a small archive that grows without end is stopped at the limit', async () => {
  const bomb = gzipSync(rawTar([{ name: 'zeros', content: Buffer.alloc(20_000_000) }]))
  assert.ok(bomb.length < 50_000)
  const limits = { packedBytes: 1_000_000, unpackedBytes: 1_000_000, entries: 10 }
  await assert.rejects(unpackInto(bomb, limits), /more than 1000000 bytes unpacked/)
})

test('too many packed bytes and too many entries are refused', async () => {
  const limits = { packedBytes: 2_000, unpackedBytes: 1_000_000, entries: 3 }
  const large = await aBundle({ 'a.txt': randomBytes(4000).toString('hex') })
  await assert.rejects(unpackInto(large.packed, limits), /more than 2000 bytes packed/)
  const many = packed(gzipSync(rawTar(['1', '2', '3', '4'].map((name) => ({ name, content: 'x' })))))
  await assert.rejects(unpackInto(many.packed, limits), /more than 3 entries/)
})
