import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { markOf, sinceBootMs } from '../../os/process-id.ts'
import { findInits, findPrograms, openRecords, type ProgramRecord } from '../../takeover/records.ts'

const hasProc = process.platform === 'linux' ? {} : { skip: 'processes cannot be told from later ones without /proc' }

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-records-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function aRecord(pid: number, more: Partial<ProgramRecord> = {}): Omit<ProgramRecord, 'boot' | 'folder'> {
  return {
    process: markOf(pid)!,
    marker: 'prefix.1',
    rawPipes: 'life.1',
    workspace: path.join(os.tmpdir(), 'workspaces', '1'),
    key: 'a key',
    effective: { level: 'process', user: 'agent', cgroup: false, network: 'host' },
    limits: { memoryMb: null, cpus: null, processes: null, openFiles: null, diskMb: null },
    offer: {
      run: newId('run'),
      attempt: 1,
      epoch: 3,
      org: 'acme',
      workflow: { slug: 'hello', version: 1 },
      environment: null,
      inputText: '',
      bundle: { digest: 'd', bytes: 1 },
      process: 'fresh',
      slots: 1,
      reuseKey: 'r',
      timeoutMs: 1000,
      graceMs: 100,
      outputBytes: 1000,
      replay: false,
      journal: { entries: 0, text: null },
      variables: {},
      secrets: false,
      token: 't',
    },
    computesFromMs: null,
    secretBytes: 12,
    leftMs: 1000,
    ...more,
  }
}

const LEASE = () => ({ fromMs: sinceBootMs(), fenceMs: 10_000 })

test('what an agent keeps of a program is found by the next one, as long as the lease holds', hasProc, (t) => {
  const folder = aFolder(t)
  const records = openRecords(folder)
  const record = aRecord(process.pid)
  records.keep(record)
  assert.deepEqual(findPrograms(folder).programs, [], 'no lease was ever extended')
  records.keep(record)
  records.leaseFrom(LEASE())
  const found = findPrograms(folder)
  assert.deepEqual(
    found.programs.map(({ boot: _, folder: _folder, ...rest }) => rest),
    [record],
  )
  records.leaseFrom({ fromMs: sinceBootMs() - 10_001, fenceMs: 10_000 })
  assert.deepEqual(findPrograms(folder).programs, [])
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.endsWith('.json')),
    [],
    'what is over is removed',
  )
})

test('a process that is gone, and another one of its number, are not found', hasProc, async (t) => {
  const folder = aFolder(t)
  const records = openRecords(folder)
  records.leaseFrom(LEASE())
  const child = spawn('true')
  const pid = child.pid!
  const mark = markOf(pid)!
  await new Promise((resolve) => child.once('exit', resolve))
  records.keep(aRecord(process.pid, { process: mark, marker: 'gone.1' }))
  records.keep(aRecord(process.pid, { process: { pid: process.pid, started: '1' }, marker: 'other.1' }))
  assert.deepEqual(findPrograms(folder).programs, [])
})

test('a copy of a state folder leaves the programs and the reaper to the original', hasProc, async (t) => {
  const folder = aFolder(t)
  const records = openRecords(folder)
  const reaper = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' })
  const exited = once(reaper, 'exit')
  t.after(() => reaper.kill('SIGKILL'))
  records.leaseFrom(LEASE())
  records.keep(aRecord(process.pid))
  records.reaperIs(reaper.pid!)
  const copy = path.join(aFolder(t), 'lives')
  cpSync(folder, copy, { recursive: true })
  const found = findPrograms(copy)
  assert.deepEqual(found.programs, [])
  found.endReaper()
  // In the place of the original too, when that was moved.
  const moved = path.join(aFolder(t), 'lives')
  renameSync(folder, moved)
  renameSync(copy, folder)
  findPrograms(folder).endReaper()
  renameSync(folder, copy)
  renameSync(moved, folder)
  assert.ok(!isGone(reaper.pid!))
  const original = findPrograms(folder)
  assert.equal(original.programs.length, 1)
  original.endReaper()
  assert.deepEqual(await exited, [null, 'SIGKILL'])
})

test('the first process of a pid namespace is found by the next agent, and not in a copy', hasProc, (t) => {
  const folder = aFolder(t)
  const mark = markOf(process.pid)!
  openRecords(folder).keepInit('prefix.1', mark)
  const copy = path.join(aFolder(t), 'lives')
  cpSync(folder, copy, { recursive: true })
  assert.deepEqual([findInits(copy), readdirSync(copy)], [[], []])
  const [found, ...more] = findInits(folder)
  assert.deepEqual([found?.init, more], [mark, []])
  found?.forget()
  assert.deepEqual(findInits(folder), [])
})

test('of another boot nothing is found', hasProc, (t) => {
  const folder = aFolder(t)
  const records = openRecords(folder)
  records.leaseFrom(LEASE())
  records.keep(aRecord(process.pid))
  const file = path.join(folder, 'prefix.1.json')
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), boot: 'another-boot' }))
  assert.deepEqual(findPrograms(folder).programs, [])
})

/** A machine whose clocks a test sets. */
function aMachine() {
  const at = { awakeMs: 1_000_000, sleptMs: 0, boot: 'first' }
  return { at, machine: { sinceBootMs: () => at.awakeMs + at.sleptMs, boot: () => at.boot } }
}

test('a program is not taken back when the machine slept for longer than its lease', hasProc, (t) => {
  const folder = aFolder(t)
  const { at, machine } = aMachine()
  const records = openRecords(folder, machine)
  records.keep(aRecord(process.pid))
  records.leaseFrom({ fromMs: machine.sinceBootMs(), fenceMs: 50_000 })
  at.sleptMs += 49_000
  assert.equal(findPrograms(folder, machine).programs.length, 1)
  at.sleptMs += 600_000
  assert.deepEqual(findPrograms(folder, machine).programs, [])
})

test('a lease is known to the next agent while it holds, and by the clock of one boot only', hasProc, (t) => {
  const folder = aFolder(t)
  const { at, machine } = aMachine()
  const lease = { fromMs: machine.sinceBootMs(), fenceMs: 50_000 }
  const found = () => findPrograms(folder, machine).lease
  assert.equal(found(), undefined)
  openRecords(folder, machine).leaseFrom(lease)
  at.awakeMs += 49_999
  assert.deepEqual(found(), lease)
  at.awakeMs += 1
  assert.equal(found(), undefined, 'it is over')
  at.awakeMs = lease.fromMs - 1
  assert.equal(found(), undefined, 'its clock has begun anew')
  at.awakeMs = lease.fromMs
  at.boot = 'second'
  assert.equal(found(), undefined)
  // As on macOS, where boots have no names.
  at.boot = ''
  openRecords(folder, machine).leaseFrom(lease)
  assert.equal(found(), undefined)
})

test('a lease of another boot holds nothing, however early it is in this one', hasProc, (t) => {
  const folder = aFolder(t)
  const { at, machine } = aMachine()
  openRecords(folder, machine).leaseFrom({ fromMs: machine.sinceBootMs(), fenceMs: 50_000 })
  at.awakeMs = 5000
  at.boot = 'second'
  openRecords(folder, machine).keep(aRecord(process.pid))
  assert.deepEqual(findPrograms(folder, machine).programs, [])
})

test(
  'a lease that an agent of before wrote down, by a clock that stood still in sleep, holds nothing',
  hasProc,
  (t) => {
    const folder = aFolder(t)
    openRecords(folder).keep(aRecord(process.pid))
    writeFileSync(path.join(folder, 'lease'), JSON.stringify({ fromMs: sinceBootMs(), fenceMs: 50_000 }))
    assert.deepEqual(findPrograms(folder).programs, [])
  },
)

test('what was cut short or is of another version keeps nobody from starting', hasProc, (t) => {
  const folder = aFolder(t)
  const records = openRecords(folder)
  records.leaseFrom(LEASE())
  records.keep(aRecord(process.pid))
  writeFileSync(path.join(folder, 'cut.1.json'), '{"boot":"')
  writeFileSync(path.join(folder, 'old.1.json'), '{"boot":"b","process":{"pid":1}}')
  writeFileSync(path.join(folder, 'reaper'), 'nonsense')
  const found = findPrograms(folder)
  assert.equal(found.programs.length, 1)
  found.endReaper()
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.endsWith('.json')),
    ['prefix.1.json'],
  )
})
