import assert from 'node:assert/strict'
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import { readConfig } from '../../config.ts'
import { addKey, ensureKeyFile, readKeyFile, removeKeys } from '../../environments/key-file.ts'
import { openSecretKeys } from '../../environments/secret-keys.ts'
import { newKeyText, readKey, sealedWith } from '../../environments/sealing.ts'
import { refusal } from '../_kit/coordinator.ts'

let folder: string
let made = 0
before(async () => (folder = await mkdtemp(join(tmpdir(), 'windlass-keys-'))))
after(() => rm(folder, { recursive: true }))

const seat = { orgId: 'org_1' as OrgId, environment: '', name: 'A' }
const lines: string[] = []
const log = createLog({}, 'error', { write: (line) => lines.push(line) })
const keysOf = (path: string) => openSecretKeys({ secretKey: undefined, secretKeyFile: path }, log)

async function aFile(text: string, mode = 0o600): Promise<string> {
  const path = join(folder, `keys-${++made}`)
  await writeFile(path, text, { mode })
  return path
}

test('the first key of the file seals, all open, and comments are for people', async () => {
  const [first, second] = [newKeyText(), newKeyText()]
  const path = await aFile(`# ours\n\n${first}\n  ${second}  \n`)
  const ring = await keysOf(path).ring()
  assert.deepEqual(ring.fingerprints, [readKey(first)!.fingerprint, readKey(second)!.fingerprint])
  assert.equal(sealedWith(ring.seal(seat, 'x')), readKey(first)!.fingerprint)
})

test('a file that is changed or replaced is read again at the next use', async () => {
  const path = await aFile(newKeyText())
  const keys = keysOf(path)
  const before = await keys.ring()
  assert.equal(await keys.ring(), before)
  const fresh = await addKey(path, await readKeyFile(path))
  const now = await keys.ring()
  assert.deepEqual(now.fingerprints, [fresh.fingerprint, ...before.fingerprints])
  assert.equal(now.open(seat, before.seal(seat, 'hush')), 'hush')
  await removeKeys(path, await readKeyFile(path), before.fingerprints)
  assert.deepEqual((await keys.ring()).fingerprints, [fresh.fingerprint])
  assert.equal((await stat(path)).mode & 0o777, 0o600)
})

test('a file that others may read is refused until it is closed to them', async () => {
  const path = await aFile(newKeyText())
  const keys = keysOf(path)
  for (const mode of [0o640, 0o604, 0o620, 0o601]) {
    await chmod(path, mode)
    await assert.rejects(keys.ring(), /may be read or changed by others than its owner; `chmod 600` it/)
  }
  await chmod(path, 0o400)
  assert.equal((await keys.ring()).fingerprints.length, 1)
})

test('what is wrong with the file is said without its path or content, and in the log with the path', async () => {
  const canary = 'c2VjcmV0LWNhbmFyeQ=='
  for (const [text, why] of [
    ['', /holds no key/],
    ['# nothing\n', /holds no key/],
    [`${newKeyText()}\n${canary}\n`, /line 2 .* is no key: a key is 32 bytes in base64/],
  ] as const) {
    lines.length = 0
    const path = await aFile(text)
    await assert.rejects(keysOf(path).ring(), (error: Error) => {
      assert.match(error.message, why)
      assert.ok(!error.message.includes(path) && !error.message.includes(canary))
      return refusal('SECRETS_UNAVAILABLE')(error)
    })
    assert.ok(lines[0]!.includes(path) && !lines[0]!.includes(canary))
  }
  await assert.rejects(keysOf(join(folder, 'absent')).ring(), /cannot be read \(ENOENT\)/)
})

test('a first start makes one file, however many make it at once, and a later one keeps it', async () => {
  const home = await mkdtemp(join(folder, 'home-'))
  const path = join(home, 'secret.key')
  await Promise.all(Array.from({ length: 8 }, () => ensureKeyFile(path)))
  const text = await readFile(path, 'utf8')
  assert.equal((await readKeyFile(path)).keys.length, 1)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  await ensureKeyFile(path)
  assert.equal(await readFile(path, 'utf8'), text)
  assert.deepEqual(await readdir(home), ['secret.key'])
})

test('a key that is added leaves link, owner and rights of the file as they are', async () => {
  const path = await aFile(newKeyText())
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(path, 4711, 4712)
  await chmod(path, 0o400)
  const alias = `${path}-link`
  await symlink(path, alias)
  await addKey(alias, await readKeyFile(alias))
  const { uid, gid, mode } = await stat(path)
  assert.deepEqual([uid, gid].join(), isRoot ? '4711,4712' : [process.getuid?.(), process.getgid?.()].join())
  assert.equal(mode & 0o777, 0o400)
  assert.equal(await readlink(alias), path)
  assert.equal((await readKeyFile(path)).keys.length, 2)
})

test('a file that cannot be replaced stays as it is, and the way out is said', async () => {
  const path = await aFile(newKeyText())
  const file = await readKeyFile(path)
  await rm(path)
  await mkdir(path)
  await assert.rejects(addKey(path, file), /cannot be replaced \(\w+\); change it by hand where it comes from/)
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.endsWith('.new')),
    [],
  )
})

test('settings that are no keys are refused without being repeated', () => {
  const env = { WINDLASS_DATABASE_URL: 'postgres://localhost' }
  const canary = 'not-a-key-but-secret'
  assert.throws(
    () => readConfig({ ...env, WINDLASS_SECRET_KEY: canary }),
    (error: Error) => /WINDLASS_SECRET_KEY/.test(error.message) && !error.message.includes(canary),
  )
  const both = { WINDLASS_SECRET_KEY: newKeyText(), WINDLASS_SECRET_KEY_FILE: 'keys' }
  assert.throws(() => readConfig({ ...env, ...both }), /leave one out/)
  const two = `${newKeyText()}, ${newKeyText()}`
  assert.equal(readConfig({ ...env, WINDLASS_SECRET_KEY: two }).secretKey, two)
})
