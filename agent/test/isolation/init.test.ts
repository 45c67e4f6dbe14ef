// A program in bubblewrap takes the first process of its pid namespace out of the process group.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import test, { type TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { DEADLINE_MS, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { PLAIN } from '../../isolation/plan.ts'
import { toolPath } from '../../isolation/tools.ts'
import { signal } from '../../os/end-processes.ts'
import { endLeftovers } from '../../run/hosts/leftovers.ts'
import { openRecords } from '../../takeover/records.ts'
import { giveRuntime } from '../_kit/runtime.ts'
import { aStage, bundleInto, texts } from '../run/programs.ts'
import { NEEDS_BUBBLEWRAP } from './requirements.ts'

const skip =
  NEEDS_BUBBLEWRAP ||
  (toolPath('perl') ? false : 'it needs perl, to trace a process') ||
  (process.arch === 'x64' ? false : 'it knows the registers of x86_64 only')
/** Without cgroups and without users for runs: these end whatever is in there. */
const isolation = { ...PLAIN, level: 'bubblewrap', cgroup: 'off' } as const
const silent = createLog({}, 'error', { write: () => {} })

/** Living processes: nobody may have looked after those that have ended. */
function processesIn(namespace: string): number[] {
  const isIn = (pid: string) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/pid`) === namespace && !isGone(Number(pid))
    } catch {
      return false
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isIn(name))
    .map(Number)
}

/** What the program has said, where it has done it. */
function namespaceIn(t: TestContext, said: string | undefined): string | undefined {
  if (said?.startsWith('pid:')) {
    t.after(() => processesIn(said).forEach((pid) => signal(pid, 'SIGKILL')))
    return said
  }
  t.skip(`programs may not trace others of their user here: ${said}`)
  return undefined
}

test('one that has taken its first process out of the group ends with its run', { skip }, async (t) => {
  const lives = mkdtempSync(path.join(os.tmpdir(), 'windlass-init-'))
  t.after(() => rmSync(lives, { recursive: true }))
  const stage = await aStage(t, { isolation, records: openRecords(lives) })
  const { ending, events } = await stage.play('takes-init.mjs')
  assert.equal(ending.how, 'returned', JSON.stringify(ending))
  const namespace = namespaceIn(t, texts(events)[0])
  if (namespace === undefined) return
  assert.deepEqual(processesIn(namespace), [])
  assert.equal(stage.processes.stats().survivors, 0)
  // The next agent has nothing to end.
  assert.deepEqual(readdirSync(lives), ['reaper'])
})

test('such a one ends when its run is cut off', { skip }, async (t) => {
  const stage = await aStage(t, { isolation })
  const said = Promise.withResolvers<string | undefined>()
  const start = await stage.start('takes-init.mjs', { inputText: '{"stays":true}' })
  const program = stage.processes.run(start, (batch) => said.resolve(texts(batch)[0]))
  const namespace = namespaceIn(t, await said.promise)
  program.kill('fenced')
  await program.done
  if (namespace !== undefined) assert.deepEqual(processesIn(namespace), [])
})

/** An agent with such a program in it. */
async function anAgent(t: TestContext) {
  const home = mkdtempSync(path.join(os.tmpdir(), 'windlass-init-'))
  await giveRuntime(home)
  const bundle = await bundleInto(path.join(home, 'bundle'), 'takes-init.mjs')
  const agent = spawn(process.execPath, [path.join(import.meta.dirname, 'enclosed-agent.ts'), home, bundle], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  const gone = once(agent, 'exit')
  t.after(async () => {
    agent.kill('SIGKILL')
    await gone
    rmSync(home, { recursive: true, force: true })
  })
  const lines: string[] = []
  const output = createInterface({ input: agent.stdout, signal: AbortSignal.timeout(DEADLINE_MS) })
  for await (const line of output) if (lines.push(line) === 2) break
  const [reaper, said] = lines
  const kill = async () => {
    agent.kill('SIGKILL')
    await gone
  }
  return { home, reaper: Number(reaper), namespace: namespaceIn(t, said), kill }
}

test('such a one ends with an agent that is killed', { skip }, async (t) => {
  const { namespace, kill } = await anAgent(t)
  if (namespace === undefined) return
  await kill()
  await untilPolled('it has ended', () => processesIn(namespace).length === 0)
})

test('such a one ends before the next agent begins, where its reaper was killed too', { skip }, async (t) => {
  const { home, reaper, namespace, kill } = await anAgent(t)
  if (namespace === undefined) return
  process.kill(-reaper, 'SIGSTOP')
  await kill()
  process.kill(-reaper, 'SIGKILL')
  await endLeftovers(home, silent, isolation)
  assert.deepEqual(processesIn(namespace), [])
  const left = readdirSync(path.join(home, 'lives')).filter((name) => name.endsWith('.init'))
  assert.deepEqual(left, [])
})
