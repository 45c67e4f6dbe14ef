import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, readdirSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { PLAIN } from '../../../isolation/plan.ts'
import type { OwnPipes } from '../../../os/process.ts'
import { openProgramPipes } from '../../../run/hosts/program-pipes.ts'
import type { RunningProgram } from '../../../run/program/program.ts'
import { openRecords } from '../../../takeover/records.ts'
import { NEEDS_BUBBLEWRAP } from '../../isolation/requirements.ts'
import { giveRuntime } from '../../_kit/runtime.ts'
import { aStage, texts } from '../programs.ts'

const hasProc = process.platform === 'linux' ? {} : { skip: 'without /proc nothing is taken back' }
/** More than are made at a time. */
const BURST = 70

/** Those of the present test: pipes are made ahead, and their folder cannot be removed before they are closed. */
const open: Awaited<ReturnType<typeof openProgramPipes>>[] = []

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-pipes-'))
  t.after(async () => {
    await Promise.all(open.splice(0).map((pipes) => pipes.close()))
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

async function somePipes(t: TestContext, folder = path.join(aFolder(t), 'pipes'), except: string[] = []) {
  const failures: unknown[] = []
  const pipes = await openProgramPipes({
    folder,
    mayLast: true,
    except,
    onFailure: (error) => void failures.push(error),
  })
  open.push(pipes)
  return { folder, pipes, failures }
}

/** As a process does that ends. */
function leave({ stdout, stderr, frames, messages }: OwnPipes): void {
  for (const { given } of [stdout, stderr, frames, messages]) closeSync(given)
  frames.read.destroy()
  messages.write.destroy()
}

test('a burst of starts takes more pipes than there were', async (t) => {
  const { pipes, failures } = await somePipes(t)
  const pairs = Array.from({ length: BURST }, () => pipes.take({ mayLast: true, owner: undefined }))
  assert.equal(new Set(pairs.map((pair) => pair?.name)).size, BURST)
  for (const [n, pair] of pairs.entries()) {
    assert.ok(pair)
    writeSync(pair.stdout.given, `out ${n}`)
    writeSync(pair.stderr.given, `err ${n}`)
    leave(pair)
    assert.deepEqual(await Promise.all([text(pair.stdout.read), text(pair.stderr.read)]), [`out ${n}`, `err ${n}`])
  }
  assert.deepEqual(failures, [])
})

test('those that a program of the agent before still has stay, and the others go', async (t) => {
  const first = await somePipes(t)
  const pair = first.pipes.take({ mayLast: true, owner: undefined })
  assert.ok(pair?.name)
  writeSync(pair.stdout.given, 'not read yet')
  pair.stdout.read.destroy()
  const next = await somePipes(t, first.folder, [pair.name])
  const found = next.pipes.find(pair.name)
  leave(pair)
  assert.deepEqual(await Promise.all([text(found.stdout), text(found.stderr)]), ['not read yet', ''])
  const [life] = pair.name.split('.')
  const left = () => readdirSync(first.folder).filter((name) => name.startsWith(`${life}.`))
  assert.deepEqual(left().toSorted(), [`${pair.name}.1`, `${pair.name}.2`])
  next.pipes.remove(pair.name)
  assert.deepEqual(left(), [])
})

test('where none can be made there are none, and it is said', async (t) => {
  const file = path.join(aFolder(t), 'pipes')
  writeFileSync(file, '')
  const { pipes, failures } = await somePipes(t, file)
  assert.equal(pipes.take({ mayLast: true, owner: undefined }), undefined)
  assert.notEqual(failures.length, 0)
})

test('what an agent and its programs have between them carries no descriptors', async (t) => {
  for (const isolation of [PLAIN, { ...PLAIN, level: 'bubblewrap' as const }]) {
    if (isolation.level === 'bubblewrap' && NEEDS_BUBBLEWRAP) return t.skip(NEEDS_BUBBLEWRAP)
    const stage = await aStage(t, { isolation })
    const { ending } = await stage.play('tells-descriptors.mjs')
    assert.deepEqual(ending, { how: 'returned', outputText: JSON.stringify(['pipe', 'pipe', 'pipe', 'pipe']) })
  }
})

/** What a program that writes raw has printed, and whether the next agent could take it back meanwhile. */
async function play(t: TestContext, prepare: (pipes: string) => void) {
  const home = aFolder(t)
  await giveRuntime(home)
  prepare(path.join(home, 'pipes'))
  const logged: string[] = []
  const records = openRecords(path.join(home, 'lives'))
  const stage = await aStage(t, { home, records, isolation: undefined, log: (name) => void logged.push(name) })
  const lines: string[] = []
  const found: boolean[] = []
  const program: RunningProgram = stage.processes.run(await stage.start('splits-characters.mjs'), (batch) => {
    lines.push(...texts(batch))
    found.push(program.whereabouts() !== undefined)
  })
  assert.deepEqual(await program.done, { how: 'returned', outputText: 'null' })
  assert.equal(lines.filter((line) => line === 'grün 日本 🌊').length, 2)
  return { isOffered: found[0], logged }
}

test('a program that has such pipes is offered to the next agent', hasProc, async (t) => {
  const { isOffered, logged } = await play(t, () => undefined)
  assert.equal(isOffered, true)
  assert.ok(!logged.includes('takeover.no-pipes'))
})

test('one that has none is executed all the same, and not offered', hasProc, async (t) => {
  const { isOffered, logged } = await play(t, (pipes) => writeFileSync(pipes, ''))
  assert.equal(isOffered, false)
  assert.ok(logged.includes('takeover.no-pipes'))
})
