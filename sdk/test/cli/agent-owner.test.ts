import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { runCli } from '../_kit/run-cli.ts'

const NEEDS_ROOT = process.getuid?.() === 0 ? false : 'it needs root, who looks at the agent of somebody else'
/** Nobody has it here. */
const OWNER = 64_220
const LONG_AGO = new Date('2020-01-01')

/** The state folder of a user whose programs have put a link to a folder of root into it. */
function aState(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'windlass-owner-'))
  t.after(() => rmSync(folder, { recursive: true }))
  chmodSync(folder, 0o711)
  const [home, roots] = [path.join(folder, 'state'), path.join(folder, 'roots')]
  mkdirSync(home)
  mkdirSync(roots, { mode: 0o700 })
  symlinkSync(roots, path.join(home, 'runtime'))
  chownSync(home, OWNER, OWNER)
  utimesSync(roots, LONG_AGO, LONG_AGO)
  const env = {
    HOME: folder,
    WINDLASS_URL: 'http://127.0.0.1:9',
    WINDLASS_AGENT_HOME: home,
    WINDLASS_AGENT_CONFIG: 'none',
    WINDLASS_AGENT_ISOLATION: 'bubblewrap',
    WINDLASS_AGENT_RUN_UIDS: 'off',
  }
  const assertUntouched = () => {
    assert.deepEqual(readdirSync(roots), [])
    assert.deepEqual([statSync(roots).uid, statSync(roots).mtime], [0, LONG_AGO])
  }
  return { folder, env, assertUntouched }
}

test(
  'root who consults the doctor about the agent of a user follows no link of that user',
  { skip: NEEDS_ROOT },
  async (t) => {
    const { env, folder, assertUntouched } = aState(t)
    const { stdout, stderr } = await runCli(['agent', 'doctor'], { env, cwd: folder })
    assert.match(stderr, /As user 64220, whose agent it is/)
    assert.match(stdout, /isolation/)
    assertUntouched()
  },
)

test('nor does root who makes a bundle for support, which root can read alone', { skip: NEEDS_ROOT }, async (t) => {
  const { env, folder, assertUntouched } = aState(t)
  const { code, stdout, stderr } = await runCli(['agent', 'support-bundle', '-o', 'help.tgz'], { env, cwd: folder })
  assert.equal(code, 0, stderr)
  const file = stdout.trim()
  assert.deepEqual([statSync(file).uid, statSync(file).mode & 0o777], [0, 0o600])
  assert.ok(statSync(file).size > 500)
  assertUntouched()
})
