// A process that changes the file of keys may stand still before each of its steps, for longer than its lock lasts.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { addKey, type KeyFile, readKeyFile, removeKeys } from '../../environments/key-file.ts'
import { newKeyText } from '../../environments/sealing.ts'

let folder: string
let made = 0
before(async () => (folder = await fs.mkdtemp(join(tmpdir(), 'windlass-overtaken-'))))
after(() => fs.rm(folder, { recursive: true }))

/** By which a file is changed: each call is a place to stand still. */
const CALLS = ['open', 'readFile', 'readdir', 'realpath', 'rename', 'rm', 'stat'] as const
const originals = { ...fs }
afterEach(restore)
function restore(): void {
  Object.assign(fs, originals)
  syncBuiltinESMExports()
}

/** Does the act of another before the call of this number. Answers how many calls were seen. */
function standStillBefore(call: number, act: () => Promise<unknown>): () => number {
  let calls = 0
  for (const name of CALLS)
    Object.assign(fs, {
      [name]: async (...args: unknown[]) => {
        if (++calls === call) {
          restore()
          await act()
        }
        return Reflect.apply(originals[name], fs, args) as unknown
      },
    })
  syncBuiltinESMExports()
  return () => calls
}

async function aFile(): Promise<string> {
  const path = join(folder, `keys-${++made}`)
  await fs.writeFile(path, `${newKeyText()}\n${newKeyText()}\n`, { mode: 0o600 })
  return path
}

const keysOf = async (path: string) => (await readKeyFile(path)).keys.map((key) => key.fingerprint)
const drafts = async () => (await fs.readdir(folder)).filter((name) => name.endsWith('.new'))

const ACTS = {
  'puts a key on top': (path: string, file: KeyFile) => addKey(path, file),
  'takes a key out': (path: string, file: KeyFile) => removeKeys(path, file, [file.keys[1]!.fingerprint]),
}

for (const [what, change] of Object.entries(ACTS))
  test(`whoever ${what} and stands still takes no key of another with him`, async () => {
    for (let call = 1; ; call++) {
      const path = await aFile()
      const file = await readKeyFile(path)
      let theirs: string | undefined
      const calls = standStillBefore(
        call,
        async () => (theirs = (await addKey(path, await readKeyFile(path))).fingerprint),
      )
      const failure = await change(path, file).then(
        () => undefined,
        (error: Error) => error,
      )
      restore()
      // He was done before he could stand still so late.
      if (theirs === undefined && calls() < call) return assert.ok(call > 5, 'he did stand still')
      assert.ok((await keysOf(path)).includes(theirs!), `call ${call}: ${String(failure)}`)
      if (failure) assert.match(failure.message, /so this call has left it alone; call it again/)
      assert.deepEqual(await drafts(), [])
    }
  })

test('the file stays as it is where the lock is lost at the last moment', async () => {
  const path = await aFile()
  const text = await fs.readFile(path, 'utf8')
  const lost = () => Promise.reject(new Error('CONNECTION_CLOSED'))
  await assert.rejects(addKey(path, await readKeyFile(path), lost), /left it alone/)
  assert.deepEqual([await fs.readFile(path, 'utf8'), await drafts()], [text, []])
})

test('of many that change the file at once by what they have read none takes out what another put on top', async () => {
  const path = await aFile()
  const file = await readKeyFile(path)
  const before = await keysOf(path)
  const done = await Promise.allSettled(Array.from({ length: 20 }, () => addKey(path, file)))
  const added = done.flatMap((one) => (one.status === 'fulfilled' ? [one.value.fingerprint] : []))
  assert.ok(added.length <= 1)
  assert.deepEqual([await keysOf(path), await drafts()], [[...added, ...before], []])
})
