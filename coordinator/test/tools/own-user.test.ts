import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { ownUser } from '../../tools/own-user.ts'

const isRoot = process.platform === 'linux' && process.getuid?.() === 0
/** Where Node itself is out of reach, no program can be had. */
const ofNode = await ownUser('deploys', [])
const noUser = 'why' in ofNode && ofNode.why

test('a user of their own is for those who can reach their files', { skip: noUser }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-own-user-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'program.ts')
  await writeFile(file, '')
  const hidden = await ownUser('deploys', [pathToFileURL(file)])
  assert.equal(hidden.user, undefined)
  assert.match('why' in hidden ? hidden.why : '', /cannot read .*program\.ts/)
  await chmod(folder, 0o755)
  const { user } = await ownUser('deploys', [pathToFileURL(file)])
  assert.ok(user && user.uid !== 0 && user.gid !== 0)
})

test('ids that a user of the machine has, or his containers, are left to him', { skip: noUser }, async () => {
  const taken = (uid: number) => (uid >= 689_824 && uid <= 755_359 ? 'They belong to containers of ann.' : undefined)
  for (const each of ['judging', 'deploys'] as const) {
    // Undefined in a container that has not so many ids.
    const { user } = await ownUser(each, [], taken)
    assert.equal(taken(user?.uid ?? 0), undefined, `${user?.uid}`)
  }
  const none = await ownUser('judging', [], () => 'They belong to containers of ann.')
  assert.deepEqual(none, { user: undefined, why: 'They belong to containers of ann.' })
})

test('a coordinator that is not root says why its processes have no user of their own', { skip: isRoot }, async () => {
  const own = await ownUser('deploys', [])
  assert.match('why' in own ? own.why : '', /only a coordinator that runs as root/)
})
