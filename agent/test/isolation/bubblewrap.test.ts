import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { PLAIN } from '../../isolation/plan.ts'
import { aStage } from '../run/programs.ts'
import { NEEDS_BUBBLEWRAP } from './requirements.ts'

const skip = NEEDS_BUBBLEWRAP
const BUBBLEWRAP = { ...PLAIN, level: 'bubblewrap' } as const

interface Seen {
  top: string[]
  hidden: string[]
  processes: number
  user: string
  capabilities: string
  noNewPrivileges: boolean
  canMakeNamespaces: boolean
  interfaces: string[]
  reached: number | string
}

async function look(t: TestContext, network: 'host' | 'none'): Promise<Seen> {
  const server = createServer((_, response) => response.end('here')).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const stage = await aStage(t, { isolation: { ...BUBBLEWRAP, network } })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { ending } = await stage.play('looks-around.mjs', { inputText: JSON.stringify({ url }) })
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  return JSON.parse(ending.outputText) as Seen
}

test(
  'a program in bubblewrap has the system to read, a process table of its own, and no power',
  { skip },
  async (t) => {
    const seen = await look(t, 'host')
    assert.deepEqual(seen.hidden, [])
    assert.ok(
      ['dev', 'etc', 'proc', 'tmp', 'usr'].every((name) => seen.top.includes(name)),
      seen.top.join(' '),
    )
    assert.ok(seen.processes <= 3, `${seen.processes} processes`)
    const { user, capabilities, noNewPrivileges, canMakeNamespaces, reached } = seen
    const expected = { user: 'run', capabilities: '0'.repeat(16), noNewPrivileges: true, canMakeNamespaces: false }
    assert.deepEqual({ user, capabilities, noNewPrivileges, canMakeNamespaces }, expected)
    assert.equal(reached, 200)
  },
)

test('without a network there is none, and the program still talks to its agent', { skip }, async (t) => {
  const seen = await look(t, 'none')
  assert.deepEqual(
    seen.interfaces.filter((name) => name !== 'lo'),
    [],
  )
  assert.equal(seen.reached, 'ECONNREFUSED')
})

test('an ending by a signal is told as one, though it happens inside', { skip }, async (t) => {
  const stage = await aStage(t, { isolation: BUBBLEWRAP })
  assert.deepEqual((await stage.play('kills-itself.mjs')).ending, { how: 'killed', signal: 'SIGKILL' })
  assert.deepEqual((await stage.play('exits-3.mjs')).ending, { how: 'exited', exitCode: 3 })
})

test('a cancel reaches the program inside, and asks it', { skip }, async (t) => {
  const stage = await aStage(t, { isolation: BUBBLEWRAP })
  const said = Promise.withResolvers<void>()
  const start = await stage.start('never-ends.mjs', { inputText: '{"tidies":true}' })
  const program = stage.processes.run(start, () => said.resolve())
  await said.promise
  program.cancel({ why: 'cancelled', reason: 'enough' })
  assert.deepEqual(await program.done, { how: 'cancelled', forced: false })
})

test('a process inside serves further runs, and none when something is left in its workspace', { skip }, async (t) => {
  const stage = await aStage(t, { isolation: BUBBLEWRAP })
  const reuse = { process: 'reuse', reuseKey: 'a' } as const
  for (const runs of [1, 2]) {
    const { ending } = await stage.play('counts-runs.mjs', reuse)
    assert.ok(ending.how === 'returned', JSON.stringify(ending))
    assert.equal((JSON.parse(ending.outputText) as { runs: number }).runs, runs)
  }
  assert.equal(stage.processes.stats().idle, 1)
  const left = await stage.play('leaves-files.mjs', { ...reuse, reuseKey: 'b' })
  assert.equal(left.ending.how, 'returned')
  assert.equal(stage.processes.stats().idle, 1)
})

test('nothing that a program starts inside outlives it', { skip }, async (t) => {
  const stage = await aStage(t, { isolation: BUBBLEWRAP })
  for (const input of [{ inSession: false }, { inSession: true }, { inSession: true, bare: true }]) {
    const { ending } = await stage.play('starts-escapee.mjs', { inputText: JSON.stringify(input) })
    assert.equal(ending.how, 'returned', JSON.stringify(ending))
    assert.deepEqual(sleepersIn(stage.home), [])
  }
  assert.equal(stage.processes.stats().survivors, 0)
})

/** By their working folder: nobody else has one below this home. */
function sleepersIn(home: string): string[] {
  const isOne = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n' && readlinkSync(`/proc/${pid}/cwd`).includes(home)
    } catch {
      return false
    }
  }
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOne(name))
}
