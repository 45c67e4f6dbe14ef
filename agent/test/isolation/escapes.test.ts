import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { PLAIN } from '../../isolation/plan.ts'
import type { HostIsolation } from '../../isolation/plan.ts'
import { aStage } from '../run/programs.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_ROOT, ofUsers } from './requirements.ts'

const SECRETS = ['identity.json', 'spool/0001', 'agent.lock', 'status.json']

/** A stage with what an agent has in its folder, and with another run of which nothing may be seen. */
async function escape(t: TestContext, isolation: HostIsolation): Promise<string[]> {
  const stage = await aStage(t, { isolation })
  for (const file of SECRETS) {
    mkdirSync(path.dirname(path.join(stage.home, file)), { recursive: true })
    // As careless as can be: it is the folder that has to keep them.
    writeFileSync(path.join(stage.home, file), 'secret', { mode: 0o600 })
  }
  const victim = stage.processes.run(await stage.start('never-ends.mjs'), () => {})
  const workspaces = path.join(stage.home, 'workspaces')
  await untilPolled('another run is under way', () => readdirSync(workspaces).length > 0)
  const pids = childrenOf(process.pid).filter((pid) => commandOf(pid).includes('host.cjs'))
  const bundle = await stage.bundle('tries-to-escape.mjs')
  chmodSync(bundle, 0o700)
  const input = {
    agentPid: process.pid,
    home: stage.home,
    files: [
      ...SECRETS.map((file) => path.join(stage.home, file)),
      path.join(stage.home, 'bundles/never-ends.mjs/main.mjs'),
    ],
    others: readdirSync(workspaces).map((name) => path.join(workspaces, name)),
    cgroup: '/sys/fs/cgroup/unified/cgroup.procs',
    victim: pids[0],
  }
  const { ending } = await stage.play('tries-to-escape.mjs', { bundleDir: bundle, inputText: JSON.stringify(input) })
  victim.kill('fenced')
  await victim.done
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  assert.ok(existsSync(path.join(stage.home, 'bundles')) && !existsSync(path.join(stage.home, 'mine')))
  return JSON.parse(ending.outputText) as string[]
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
}

test('a run with a user of its own reaches nothing of the agent nor of other runs', { skip: NEEDS_ROOT }, async (t) => {
  const reached = await escape(t, ofUsers())
  // All bundles are of one organisation, and who knows the digest of one has it already.
  assert.deepEqual(
    reached.filter((each) => !each.endsWith('bundles/never-ends.mjs/main.mjs')),
    [],
  )
})

test('a run in bubblewrap sees nothing of the agent nor of other runs', { skip: NEEDS_BUBBLEWRAP }, async (t) => {
  assert.deepEqual(await escape(t, { ...PLAIN, level: 'bubblewrap' }), [])
})

test('a run in bubblewrap may have a user of its own as well', { skip: NEEDS_ROOT || NEEDS_BUBBLEWRAP }, async (t) => {
  assert.deepEqual(await escape(t, ofUsers({ level: 'bubblewrap' })), [])
})
