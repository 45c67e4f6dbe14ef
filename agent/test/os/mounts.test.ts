import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs, { mkdirSync, mkdtempSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { runsFolder } from '../../isolation/cgroup-folder.ts'
import { MARKER } from '../../os/environment.ts'
import { sweep } from '../../os/end-processes.ts'
import { locationOf } from '../../os/mounts.ts'
import { endLeftovers } from '../../run/hosts/leftovers.ts'

const NEEDS_NAMESPACES = spawnSync('unshare', ['-m', 'true']).status === 0 ? false : 'it needs mount namespaces'

const STATE = '/var/lib/windlass-agent'
const HOST = `
24 31 0:22 / /proc rw - proc proc rw
31 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
40 31 8:2 / /var/lib rw - ext4 /dev/sda2 rw`

test('a path leads two to the same folder where device and path on it are the same', () => {
  const inState = `8:2:/windlass-agent/workspaces/1`
  assert.equal(locationOf(`${STATE}/workspaces/1`, HOST), inState)
  const ofVolume = `
50 49 0:60 / / rw - overlay overlay rw
51 50 8:2 /volumes/agent/_data /var/lib/windlass-agent rw - ext4 /dev/sda2 rw`
  assert.equal(locationOf(`${STATE}/workspaces/1`, ofVolume), '8:2:/volumes/agent/_data/workspaces/1')
  const inBubblewrap = `
60 59 0:70 / / rw - tmpfs tmpfs rw
61 60 8:2 /windlass-agent/workspaces/1 /var/lib/windlass-agent/workspaces/1 rw - ext4 /dev/sda2 rw`
  assert.equal(locationOf(`${STATE}/workspaces/1`, inBubblewrap), inState)
  assert.equal(locationOf(`${STATE}/workspaces/2`, inBubblewrap), '0:70:/var/lib/windlass-agent/workspaces/2')
})

test('what is mounted over it counts, in whatever order it is listed, and what that hides does not', () => {
  const over = `${HOST}\n42 41 0:81 / /var/lib rw - tmpfs tmpfs rw\n41 40 0:80 / /var/lib rw - tmpfs tmpfs rw`
  assert.equal(locationOf('/var/lib/x', over), '0:81:/x')
  assert.equal(locationOf('/var/libs', over), '8:1:/var/libs')
  const hidden = `${HOST}\n43 31 0:82 / /var rw - tmpfs tmpfs rw`
  assert.equal(locationOf('/var/lib/x', hidden), '0:82:/lib/x')
})

test('spaces and line breaks in names are read, and nothing is made of what is no list of mounts', () => {
  const named = '31 1 8:1 / / rw - ext4 a rw\n40 31 8:2 /of\\040a\\134b /my\\040state rw - ext4 b rw'
  assert.equal(locationOf('/my state/1', named), '8:2:/of a\\b/1')
  for (const text of ['', 'nothing', '31 1 8:1']) assert.equal(locationOf('/a', text), undefined)
})

const NEEDS_ROOT = process.geteuid?.() === 0 ? false : 'it needs root'

type Shown = { cwd?: string; marker?: string; over?: string; beside?: string; uid?: number }

/** In a mount namespace of its own, as in a container that shows its processes to this one. */
async function aSleeper(
  t: TestContext,
  home: string,
  { cwd = '/', marker, over, beside = ':', uid = 0 }: Shown,
): Promise<number> {
  const named = { HOME: path.join(home, 'workspaces/1') }
  const env = { PATH: '/usr/bin:/bin', ...(marker !== undefined && { [MARKER]: marker, ...named }) }
  const mount = over === undefined ? ':' : `mount -t tmpfs none '${over}' && mkdir -p '${home}/workspaces/1'`
  const as = uid === 0 ? '' : `setpriv --clear-groups --reuid ${uid} --regid ${uid}`
  const script = `${mount} && ${beside} && cd '${cwd}' && echo ready && exec ${as} sleep 300`
  const child = spawn('unshare', ['-m', 'sh', '-c', script], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  assert.ok(child.pid)
  return child.pid
}

function aHome(t: TestContext): string {
  const home = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'windlass-mounts-')))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  mkdirSync(path.join(home, 'workspaces/1'), { recursive: true })
  return home
}

test(
  'programs of an agent in a container with the same state path are none of ours',
  { skip: NEEDS_NAMESPACES },
  async (t) => {
    const home = aHome(t)
    const workspace = path.join(home, 'workspaces/1')
    const ours = await Promise.all([
      aSleeper(t, home, { cwd: workspace }),
      aSleeper(t, home, { marker: 'of-before.1' }),
      aSleeper(t, home, { marker: 'of-before.1', cwd: home }),
    ])
    const others = await Promise.all([
      aSleeper(t, home, { cwd: workspace, over: home }),
      aSleeper(t, home, { marker: 'another.1', over: home }),
      aSleeper(t, home, { marker: 'another.1', cwd: home, over: home }),
    ])
    await endLeftovers(home, createLog({}, 'error', { write: () => {} }))
    for (const pid of ours) await untilGone('what an earlier agent has left', pid)
    assert.deepEqual(others.map(isGone), [false, false, false])
  },
)

test(
  'the mounts of a namespace are read once, however many processes are in it',
  { skip: NEEDS_NAMESPACES },
  async (t) => {
    const home = aHome(t)
    const cwd = path.join(home, 'workspaces/1')
    const first = await aSleeper(t, home, { cwd, over: home })
    const second = spawn('nsenter', [`--mount=/proc/${first}/ns/mnt`, `--wd=/proc/${first}/cwd`, 'sleep', '300'])
    t.after(() => second.kill('SIGKILL'))
    await untilPolled('it has entered', () => isIn(second.pid!, cwd))
    const opened: unknown[] = []
    const open = fs.openSync
    t.mock.method(fs, 'openSync', (...args: Parameters<typeof open>) => {
      opened.push(args[0])
      return open(...args)
    })
    syncBuiltinESMExports()
    t.after(() => {
      t.mock.restoreAll()
      syncBuiltinESMExports()
    })
    await endLeftovers(home, createLog({}, 'error', { write: () => {} }))
    assert.deepEqual([first, second.pid!].map(isGone), [false, false])
    assert.equal(opened.filter((file) => /^\/proc\/\d+\/mountinfo$/.test(String(file))).length, 1)
  },
)

test(
  'what a process sees of a namespace in a chroot is not what the others see',
  { skip: NEEDS_NAMESPACES },
  async (t) => {
    const home = aHome(t)
    const cwd = path.join(home, 'workspaces/1')
    const jail = aHome(t)
    const script = `mount -t tmpfs none '${home}' && mkdir -p '${cwd}' && cd '${cwd}' &&
      exec perl -e '$| = 1; chroot("${jail}") or die; print "ready\\n"; sleep 300'`
    const first = spawn('unshare', ['-m', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => first.kill('SIGKILL'))
    await once(first.stdout, 'data')
    const pid = String(first.pid)
    const second = spawn('sh', ['-c', `exec nsenter --mount=/proc/${pid}/ns/mnt sh -c 'cd ${cwd} && exec sleep 300'`])
    t.after(() => second.kill('SIGKILL'))
    await untilPolled('it has entered', () => isIn(second.pid!, cwd))
    await endLeftovers(home, createLog({}, 'error', { write: () => {} }))
    assert.equal(isGone(second.pid!), false)
  },
)

/** Where the kernel says that it works, as it is called there. */
function isIn(pid: number, folder: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === folder
  } catch {
    return false
  }
}

test(
  'a process that hides behind more mounts than any container has is ended',
  { skip: NEEDS_NAMESPACES },
  async (t) => {
    const home = aHome(t)
    // Each of these doubles them: 1,024 are there in the end.
    const doubled = `mkdir -p '${home}/x' && mount -t tmpfs none '${home}/x' && for i in 1 2 3 4 5 6 7 8 9 10; do
    mkdir '${home}/x/'$i && mount --rbind '${home}/x' '${home}/x/'$i || exit 1; done`
    const pid = await aSleeper(t, home, { cwd: path.join(home, 'workspaces/1'), over: home, beside: doubled })
    await endLeftovers(home, createLog({}, 'error', { write: () => {} }))
    await untilGone('what hides', pid)
  },
)

test(
  'the mounts of a user with an account, who is none of runs, are not read at all',
  { skip: NEEDS_NAMESPACES || NEEDS_ROOT },
  async (t) => {
    const home = aHome(t)
    const cwd = path.join(home, 'workspaces/1')
    const others = await Promise.all([1, 65534].map((uid) => aSleeper(t, home, { cwd, uid })))
    const ofRuns = await aSleeper(t, home, { cwd, uid: 1_999_999_999 })
    await endLeftovers(home, createLog({}, 'error', { write: () => {} }))
    await untilGone('what an earlier agent has left', ofRuns)
    assert.deepEqual(others.map(isGone), [false, false])
  },
)

test(
  'the end of a run ends nothing in the folder of the same path in a container',
  { skip: NEEDS_NAMESPACES },
  async (t) => {
    const home = aHome(t)
    const workspace = path.join(home, 'workspaces/1')
    const ours = await aSleeper(t, home, { cwd: workspace })
    const other = await aSleeper(t, home, { cwd: workspace, over: home })
    assert.equal(await sweep({ marker: 'of-the-run.1', workspace }), true)
    await untilGone('what the run has left', ours)
    assert.equal(isGone(other), false)
  },
)

test('nor have they the same cgroups, which end with either of them', { skip: NEEDS_NAMESPACES }, (t) => {
  const home = aHome(t)
  const file = path.join(import.meta.dirname, '../../isolation/cgroup-folder.ts')
  const program = `import('${file}').then((all) => console.log(all.runsFolder('${home}')))`
  const nameAfter = (mount: string) => {
    const command = [mount, `exec '${process.execPath}' --disable-warning=ExperimentalWarning -e "$0"`].join(' && ')
    return spawnSync('unshare', ['-m', 'sh', '-c', command, program], { encoding: 'utf8' }).stdout.trim()
  }
  assert.equal(nameAfter(':'), runsFolder(home))
  const ofContainer = nameAfter(`mount -t tmpfs none '${home}'`)
  assert.match(ofContainer, /^windlass-runs-[0-9a-f]{12}$/)
  assert.notEqual(ofContainer, runsFolder(home))
})

/** Without mounts of its own, as agents of images that were unpacked by hand. Perl is there with all that it needs. */
const CHROOT = 'chroot($ARGV[0]) && chdir("/") && syswrite(STDOUT, "ready") or die; sleep 300'
const NEEDS_CHROOT =
  spawnSync('perl', ['-e', 'chroot("/") or exit 1']).status === 0 ? false : 'it needs chroot and perl'

test(
  'programs of an agent in a chroot with the same state path are none of ours',
  { skip: NEEDS_CHROOT },
  async (t) => {
    const [home, jail] = [aHome(t), aHome(t)]
    const start = async (root: string) => {
      const env = { PATH: process.env['PATH'], [MARKER]: 'another.1', HOME: path.join(home, 'workspaces/1') }
      const child = spawn('perl', ['-e', CHROOT, root], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      t.after(() => child.kill('SIGKILL'))
      await once(child.stdout, 'data')
      return child.pid!
    }
    const [other, ours] = [await start(jail), await start('/')]
    await endLeftovers(home, createLog({}, 'error', { write: () => {} }))
    await untilGone('what an earlier agent has left', ours)
    assert.equal(isGone(other), false)
  },
)
