import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { asUser, endUids } from '../../isolation/uids.ts'
import { groupMembers, uidsOf } from '../../os/process-table.ts'
import { NEEDS_ROOT } from './requirements.ts'

const UID = 650_004

function mocking(t: TestContext, name: 'readdirSync' | 'readFileSync', read: (file: unknown) => unknown): void {
  const real = fs[name] as (...args: unknown[]) => unknown
  t.mock.method(fs, name, (...args: unknown[]) => read(args[0]) ?? real(...args))
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
}

test('what no look sees, as it forks on and on, is killed with its user', { skip: NEEDS_ROOT }, async (t) => {
  const child = spawn('setpriv', [...asUser(UID), 'sleep', '300'], { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  await untilPolled('it is that user', () => uidsOf(child.pid!).includes(UID))
  mocking(t, 'readdirSync', (folder) => (folder === '/proc' ? [] : undefined))
  assert.equal(await endUids({ first: UID, last: UID }), true)
  assert.deepEqual(await exited, [null, 'SIGKILL'])
})

test('a process of which the first thread alone has ended lives', (t) => {
  const numbers = (threads: number) => `Z 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 ${threads} 0`
  const processes = new Map([
    [4_000_001, 2],
    [4_000_002, 1],
  ])
  mocking(t, 'readdirSync', (folder) => (folder === '/proc' ? [...processes.keys()].map(String) : undefined))
  mocking(t, 'readFileSync', (file) => {
    const [, pid, what] = /^\/proc\/(400000\d)\/(\w+)$/.exec(String(file)) ?? []
    const threads = processes.get(Number(pid)) ?? 0
    if (what === 'stat') return `${pid} (a b) c) ${numbers(threads)}`
    if (what === 'status')
      return `Name:\ta\nState:\tZ (zombie)\nUid:\t${UID}\t${UID}\t${UID}\t${UID}\nThreads:\t${threads}\n`
    return undefined
  })
  assert.deepEqual(uidsOf(4_000_001), [UID, UID, UID, UID])
  assert.deepEqual(uidsOf(4_000_002), [])
  assert.deepEqual(groupMembers(7), [4_000_001])
})
