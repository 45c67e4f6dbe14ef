import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
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

type Shown = { cwd?: string; marker?: string; over?: string }

/** In a mount namespace of its own, as in a container that shows its processes to this one. */
async function aSleeper(t: TestContext, home: string, { cwd = '/', marker, over }: Shown): Promise<number> {
  const named = { HOME: path.join(home, 'workspaces/1') }
  const env = { PATH: '/usr/bin:/bin', ...(marker !== undefined && { [MARKER]: marker, ...named }) }
  const mount = over === undefined ? ':' : `mount -t tmpfs none '${over}' && mkdir -p '${home}/workspaces/1'`
  const script = `${mount} && cd '${cwd}' && echo ready && exec sleep 300`
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
