import assert from 'node:assert/strict'
import test from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { AgentRun } from '../../run/agent-run.ts'
import type { RunningProgram } from '../../run/program/program.ts'
import { newHeld, type Held } from '../../run/spool/held.ts'
import type { Lease, ProgramRecord, Records } from '../../takeover/records.ts'
import { createTakeover } from '../../takeover/takeover.ts'
import { aLog } from '../_kit/an-agent.ts'

const LEASE = { fromMs: 1, fenceMs: 2 }

/** A takeover over a disk that takes something, or nothing. */
function aTakeover(isFull: () => boolean, held: Held[] = []) {
  const written: Pick<ProgramRecord, 'secretBytes' | 'leftMs'>[] = []
  const leases: Lease[] = []
  const write = () => {
    if (isFull()) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  }
  const records = {
    rendezvous: () => '',
    keep: (record) => {
      write()
      written.push(record)
    },
    forget: write,
    keepInit: write,
    forgetInit: write,
    reaperIs: write,
    leaseFrom(lease) {
      write()
      leases.push(lease)
    },
  } satisfies Records
  const spared: boolean[] = []
  const processes = {
    keep: (_pid: number, isSpared: boolean) => void spared.push(isSpared),
    leaseUntil: () => undefined,
  }
  const logged = aLog()
  const spool = { mark: () => undefined, held: () => held }
  const takeover = createTakeover({ records, processes, spool, log: logged.log, lease: LEASE, found: [] })
  const done = Promise.withResolvers<void>()
  const at = { pid: process.pid, marker: 'm.1', workspace: '/nowhere', countedMs: 5, leftMs: 10, turns: 1 }
  const program = {
    whereabouts: () => ({ ...at }),
    follow: () => undefined,
    done: done.promise,
  } as unknown as RunningProgram
  const agentRun = { offer: { run: newId('run'), epoch: 1, journal: {} }, secretBytes: 12 } as unknown as AgentRun
  return { takeover, agentRun, program, at, spared, written, leases, end: done.resolve }
}

test('on a full disk a program is not kept, and nothing breaks', async () => {
  const { takeover, agentRun, program, spared, end } = aTakeover(() => true)
  takeover.watch(agentRun, program, true)
  takeover.leaseFrom(LEASE)
  end()
  await program.done
  assert.ok(!spared.includes(true), 'whoever is not in a file is not left alive')
})

test('a lease that cannot be written ends earlier for the next agent, and nothing breaks', () => {
  let isFull = false
  const { takeover, agentRun, program, spared, end } = aTakeover(() => isFull)
  takeover.watch(agentRun, program, true)
  assert.deepEqual(spared, [true])
  isFull = true
  takeover.leaseFrom(LEASE)
  end()
})

test('a lease is written down while there is something to tell, also where no program is kept', () => {
  const held: Held[] = []
  const { takeover, leases } = aTakeover(() => false, held)
  takeover.leaseFrom(LEASE)
  assert.deepEqual(leases, [])
  held.push(newHeld(newId('run'), 1, { segment: 1, offset: 0 }))
  takeover.leaseFrom(LEASE)
  assert.deepEqual(leases, [LEASE])
})

test('the next agent knows how many bytes of secrets a program was given', () => {
  const { takeover, agentRun, program, written, end } = aTakeover(() => false)
  takeover.watch(agentRun, program, true)
  assert.deepEqual(
    written.map(({ secretBytes }) => secretBytes),
    [12],
  )
  end()
})

test('a program that has waited between two looks is written anew', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { takeover, agentRun, program, at, written, end } = aTakeover(() => false)
  takeover.watch(agentRun, program, true)
  t.mock.timers.tick(1000)
  Object.assign(at, { countedMs: 1, leftMs: 6, turns: 2 })
  t.mock.timers.tick(1000)
  assert.deepEqual(
    written.map(({ leftMs }) => leftMs),
    [10, 6],
  )
  end()
})
