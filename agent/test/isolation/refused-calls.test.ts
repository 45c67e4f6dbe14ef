import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { PLAIN } from '../../isolation/plan.ts'
import type { HostIsolation } from '../../isolation/plan.ts'
import { toolPath } from '../../isolation/tools.ts'
import { aStage } from '../run/programs.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_ROOT, ofUsers } from './requirements.ts'

const isNumbered = ['x64', 'arm64'].includes(process.arch)
const NEEDS_PERL = toolPath('perl') && isNumbered ? false : 'it needs perl, to make system calls, on x64 or arm64'
const canFilter = () => spawnSync('setpriv', ['--help'], { encoding: 'utf8' }).stdout.includes('--seccomp-filter')
const NEEDS_FILTERS = NEEDS_ROOT || canFilter() ? false : 'it needs setpriv of util-linux 2.41 or later'

const EPERM = '1'

async function answersTo(t: TestContext, program: string, isolation: HostIsolation): Promise<Record<string, string>> {
  const stage = await aStage(t, { isolation })
  const { ending } = await stage.play(program)
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  return JSON.parse(ending.outputText) as Record<string, string>
}

async function assertRefused(t: TestContext, isolation: HostIsolation): Promise<void> {
  const { x32, ...said } = await answersTo(t, 'asks-for-keyrings.mjs', isolation)
  assert.deepEqual(said, { add_key: EPERM, request_key: EPERM, keyctl: EPERM, getppid: 'done' })
  assert.notEqual(x32, 'done')
  const leases = await answersTo(t, 'asks-for-leases.mjs', isolation)
  assert.deepEqual(leases, { take: EPERM, give: EPERM, delegate: EPERM, look: 'done', flags: 'done' })
}

const ofRoot = NEEDS_ROOT || NEEDS_PERL

test(
  'a program in bubblewrap gets to no keyring and to no lease',
  { skip: NEEDS_BUBBLEWRAP || NEEDS_PERL },
  async (t) => {
    await assertRefused(t, { ...PLAIN, level: 'bubblewrap' })
  },
)

test('nor does one with a user of its own besides', { skip: ofRoot || NEEDS_BUBBLEWRAP }, async (t) => {
  await assertRefused(t, ofUsers({ level: 'bubblewrap' }))
})

test('nor one with a user alone, where setpriv can help', { skip: ofRoot || NEEDS_FILTERS }, async (t) => {
  await assertRefused(t, ofUsers())
})
