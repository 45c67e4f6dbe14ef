import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { openQueues } from '../../isolation/message-queues.ts'
import { asUser } from '../../isolation/uids.ts'
import { removeTraces } from '../../isolation/user-traces.ts'
import { formerOwner } from '../../os/remove-tree.ts'
import { NEEDS_ROOT } from './requirements.ts'

const NEEDS_PERL = NEEDS_ROOT || (existsSync('/usr/bin/perl') ? false : 'it needs perl, to hand a queue over')
const REMOVE_TREE = path.join(import.meta.dirname, '../../os/remove-tree.ts')
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

/** Numbers of `mq_open` and `mq_unlink`. */
const CALLS: Partial<Record<NodeJS.Architecture, [number, number]>> = { x64: [240, 241], arm64: [180, 181] }
const NEEDS_CALLS = NEEDS_PERL || (CALLS[process.arch] ? false : 'it needs to know the numbers of system calls')

test('POSIX message queues of a user go, and those of another stay', { skip: NEEDS_CALLS }, async (t) => {
  const [open, unlink] = CALLS[process.arch]!
  const call = (uid: number, text: string) =>
    spawnSync('setpriv', [...asUser(uid), '/usr/bin/perl', '-e', `my $n = "$ARGV[0]\\0"; ${text}`, nameOf(uid)]).status
  const nameOf = (uid: number) => `windlass-${process.pid}-${uid}`
  const isQueueOf = (uid: number) => call(uid, `exit(syscall(${open}, $n, 0, 0, 0) < 0 ? 1 : 0)`) === 0
  for (const uid of [THEIRS, OTHER]) {
    // O_CREAT and O_RDWR.
    assert.equal(call(uid, `exit(syscall(${open}, $n, 0102, 0600, 0) < 0 ? 1 : 0)`), 0)
    t.after(() => call(uid, `syscall(${unlink}, $n)`))
  }
  assert.deepEqual([isQueueOf(THEIRS), isQueueOf(OTHER)], [true, true])
  const isStaying = await removeTraces((uid) => uid === THEIRS)
  if (!(await openQueues())) return t.skip('it needs queues as files, in /dev/mqueue')
  assert.equal(isStaying(THEIRS), false)
  assert.deepEqual([isQueueOf(THEIRS), isQueueOf(OTHER)], [false, true])
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

test(
  'what a user left in a folder of root for all goes, and in one of another user stays',
  { skip: NEEDS_ROOT },
  async (t) => {
    const shared = aFolder(t, 0, 0o1777)
    const others = aFolder(t, OTHER, 0o777)
    for (const folder of [shared, others]) leave(path.join(folder, 'file'), THEIRS)
    leave(path.join(shared, 'of-another'), OTHER)
    assert.equal((await removeTraces((uid) => uid === THEIRS))(THEIRS), false)
    assert.deepEqual([readdirSync(shared), readdirSync(others)], [['of-another'], ['file']])
  },
)

test('a removal that was cut off by a kill is finished by the next look', { skip: NEEDS_ROOT }, async (t) => {
  const folder = aFolder(t, THEIRS, 0o755)
  const script = `
    import fs from 'node:fs/promises'
    import { removeTree } from ${JSON.stringify(REMOVE_TREE)}
    // In the middle: it is root's by now, and what is in it is on its way out.
    fs.rename = () => process.kill(process.pid, 'SIGKILL')
    await removeTree(${JSON.stringify(folder)})`
  mkdirSync(path.join(folder, 'more'))
  const node = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
  assert.equal(spawnSync(process.execPath, node).signal, 'SIGKILL')
  assert.equal(statSync(folder).uid, 0)
  const aside = () => readdirSync('/tmp').filter((name) => name.startsWith('gone-') && ownerOf(name) === THEIRS)
  assert.equal(aside().length, 1)
  assert.equal((await removeTraces((uid) => uid === THEIRS))(THEIRS), false)
  assert.equal(existsSync(folder), false)
  assert.deepEqual(aside(), [])
})

const ownerOf = (name: string) => formerOwner(statSync(path.join('/tmp', name)))

function aFolder(t: TestContext, uid: number, mode: number): string {
  const folder = mkdtempSync('/tmp/windlass-traces-')
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, mode)
  chownSync(folder, uid, uid)
  return folder
}

function leave(file: string, uid: number): void {
  writeFileSync(file, '')
  chownSync(file, uid, uid)
}
