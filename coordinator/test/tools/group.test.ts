import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { createToolPool } from '../../tools/pool.ts'

const entry = new URL('./programs/starter.ts', import.meta.url)
const OPTIONS = { name: 'test', wallMs: 60_000, cpuMs: 1_000, heapMb: 64, most: 1, idleMs: 60_000, mostWaiting: 10 }

test('what a child has started ends with it', async (t) => {
  const pool = createToolPool<{ isEndless: boolean }, number>({ ...OPTIONS, entry })
  t.after(() => pool.close())
  const start = async () => {
    const outcome = await pool.run({ org: 'org', payload: { isEndless: false } })
    assert.equal(outcome.kind, 'answer')
    return outcome.kind === 'answer' ? outcome.answer : 0
  }
  const late = await start()
  assert.equal(isGone(late), false)
  assert.equal((await pool.run({ org: 'org', payload: { isEndless: true } })).kind, 'too slow')
  await untilGone('what a child over its deadline had started', late)
  const idle = await start()
  await pool.close()
  await untilGone('what an idle child had started', idle)
})

test('what a child has started ends with a coordinator that is killed', async (t) => {
  const program = `
    import { createToolPool } from ${JSON.stringify(import.meta.resolve('../../tools/pool.ts'))}
    const entry = new URL(${JSON.stringify(entry.href)})
    const pool = createToolPool({ ...${JSON.stringify({ ...OPTIONS, cpuMs: 60_000 })}, entry })
    console.log((await pool.run({ org: 'org', payload: { isEndless: false } })).answer)
    await pool.run({ org: 'org', payload: { isEndless: true } })`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
  const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => parent.kill('SIGKILL'))
  const [said] = (await once(parent.stdout, 'data')) as [Buffer]
  const pid = Number(said.toString())
  assert.equal(isGone(pid), false)
  parent.kill('SIGKILL')
  await untilGone('what the child had started', pid)
})
