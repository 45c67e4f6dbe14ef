import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { pidsIn } from '../../isolation/cgroup-folder.ts'
import { NO_LIMITS } from '../../isolation/plan.ts'
import { withProcessLimit } from '../../isolation/process-limit.ts'
import { toolPath } from '../../isolation/tools.ts'
import { signal } from '../../os/end-processes.ts'
import { NEEDS_ROOT } from './requirements.ts'

const MOST = 500

/** A cgroup of version 1 or 2 that holds so many processes; undefined where none can be made. */
function aFullCgroup(t: TestContext): string | undefined {
  const tops = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup']
  const folder = tops.map((top) => path.join(top, `windlass-test-${process.pid}`)).find(isLimited)
  if (folder !== undefined) t.after(() => endAll(folder))
  return folder
}

function isLimited(folder: string): boolean {
  try {
    mkdirSync(folder)
    if (existsSync(`${folder}/pids.max`)) {
      writeFileSync(`${folder}/pids.max`, String(MOST))
      return true
    }
    rmdirSync(folder)
  } catch {
    // Not here, or not for us.
  }
  return false
}

/** Whatever a test has come to, nothing of a bomb goes on. */
async function endAll(folder: string): Promise<void> {
  writeFileSync(`${folder}/pids.max`, '0')
  await untilPolled('nothing is in it', () => {
    const pids = pidsIn(folder)
    for (const pid of pids) signal(pid, 'SIGKILL')
    return pids.length === 0
  })
  await untilPolled('it is gone', () => {
    try {
      rmdirSync(folder)
      return true
    } catch {
      return false
    }
  })
}

/** What becomes of a fork bomb, and of a run beside it, where an agent and its runs may have so many processes. */
async function explode(folder: string, limit: string): Promise<Record<string, unknown>> {
  const child = path.join(import.meta.dirname, 'in-full-container.ts')
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', child, folder, limit]
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    `echo $$ > ${folder}/cgroup.procs && exec "$@"`,
    'sh',
    ...node,
  ])
  return JSON.parse(stdout) as Record<string, unknown>
}

const skip = NEEDS_ROOT || (toolPath('perl') ? false : 'it needs perl')
const NO_CGROUP = 'it needs a machine where cgroups with a limit of processes can be made'

test('a run that forks on and on leaves room for others, also where nobody has set a limit', { skip }, async (t) => {
  const folder = aFullCgroup(t)
  if (folder === undefined) return t.skip(NO_CGROUP)
  assert.deepEqual(await explode(folder, ''), { meanwhile: 'returned', left: 0 })
})

test('a limit that somebody has set is what counts, however high', () => {
  const set = { ...NO_LIMITS, processes: 1_000_000 }
  assert.equal(withProcessLimit(set), set)
})

test(
  'where a run has all processes there are, it is ended, and what could not begin beside it has left nothing',
  { skip },
  async (t) => {
    const folder = aFullCgroup(t)
    if (folder === undefined) return t.skip(NO_CGROUP)
    const { meanwhile: _, ...after } = await explode(folder, '100000')
    assert.deepEqual(after, { left: 0 })
  },
)
