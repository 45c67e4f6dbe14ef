import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { asUser } from '../../isolation/uids.ts'
import { removeTraces } from '../../isolation/user-traces.ts'
import { NEEDS_ROOT } from './requirements.ts'

const NEEDS_PERL = NEEDS_ROOT || (existsSync('/usr/bin/perl') ? false : 'it needs perl, to hand a queue over')
const TRACES = path.join(import.meta.dirname, '../../isolation/user-traces.ts')
/** Of no range that a test has. */
const [THEIRS, OTHER] = [650_001, 650_002]

function makeQueue(t: TestContext, uid: number, owner = uid): string {
  const make = `
    my $id = msgget(0, 0600); my $data = '';
    msgctl($id, 2, $data); substr($data, 4, 4) = pack('I', $ARGV[0]); msgctl($id, 1, $data); print $id;`
  const args = [...asUser(uid), '/usr/bin/perl', '-e', make, String(owner)]
  const { stdout, stderr } = spawnSync('setpriv', args, { encoding: 'utf8' })
  assert.match(stdout, /^\d+$/, stderr)
  t.after(() => spawnSync('ipcrm', ['-q', stdout], { stdio: 'ignore' }))
  return stdout
}

const isQueue = (id: string) => readFileSync('/proc/sysvipc/msg', 'utf8').includes(` ${id} `)

test('objects of a user go, with the powers of a service', { skip: NEEDS_PERL }, async (t) => {
  const id = makeQueue(t, THEIRS)
  const script = `
    import { removeTraces } from ${JSON.stringify(TRACES)}
    const isStaying = await removeTraces((uid) => uid === ${THEIRS})
    console.log(isStaying(${THEIRS}))`
  const powers = '-all,+setuid,+setgid,+chown,+fowner,+dac_override,+kill,+setpcap,+sys_ptrace'
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
  const { stdout, stderr } = spawnSync('setpriv', [`--bounding-set=${powers}`, ...node], { encoding: 'utf8' })
  assert.equal(stdout.trim(), 'false', stderr)
  assert.equal(isQueue(id), false)
})

test('what others hand to a user keeps nobody from its number', { skip: NEEDS_PERL }, async (t) => {
  const handed = makeQueue(t, OTHER, THEIRS)
  assert.equal((await removeTraces((uid) => uid === THEIRS))(THEIRS), false)
  assert.equal(isQueue(handed), false)
})

test('a mount into which not even root may look is nobody’s trace', { skip: NEEDS_ROOT }, async (t) => {
  const mount = path.join('/var/tmp', `windlass-mount-${process.pid}`)
  writeFileSync(mount, '')
  t.after(() => fs.rm(mount))
  const lstat = fs.lstat
  t.mock.method(fs, 'lstat', (file: Buffer | string) =>
    String(file) === mount ? Promise.reject(Object.assign(new Error(), { code: 'ENOTCONN' })) : lstat(file),
  )
  assert.equal((await removeTraces((uid) => uid === THEIRS))(THEIRS), false)
})
