import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder } from './_kit/an-agent.ts'
import { aProgram } from './_kit/bundle.ts'
import { FakeCoordinator, REGISTRATION_TOKEN } from './_kit/fake-coordinator.ts'

const PROGRAM = path.join(import.meta.dirname, 'programs/starts-with-token.ts')
const NEEDS_PROC = existsSync('/proc/self/cmdline') ? false : 'it needs /proc'

/** An agent as a command line starts it. `file` is open in it, as number 40. */
async function anAgentByHand(context: TestContext, file?: number) {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const more = file === undefined ? [] : [...Array<'ignore'>(37).fill('ignore'), file]
  const stdio = ['ignore', 'ignore', 'ignore', ...more] as const
  const child = spawn(process.execPath, [PROGRAM, fake.url, folder, REGISTRATION_TOKEN], { stdio: [...stdio] })
  context.after(async () => {
    child.kill('SIGKILL')
    await fake.close()
    await remove()
  })
  await until('it has said hello', () => fake.heard('hello').length > 0)
  return { fake, pid: child.pid }
}

/** Everybody on a machine may read everybody's command lines, and a token may serve several times. */
test('a token that was an argument does not stay in the command line', { skip: NEEDS_PROC }, async (context) => {
  const { pid } = await anAgentByHand(context)
  const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  assert.match(commandLine, /agent/)
  assert.ok(!commandLine.includes(REGISTRATION_TOKEN), commandLine)
})

test(
  'what was left open in an agent when it was started is not open in runs',
  { skip: NEEDS_PROC },
  async (context) => {
    const { folder, remove } = await aFolder()
    context.after(remove)
    const file = path.join(folder, 'of-somebody-else')
    writeFileSync(file, 'theirs')
    const { fake } = await anAgentByHand(context, openSync(file, 'r'))
    const reads = `const { readFileSync } = await import('node:fs'); try { return readFileSync('/proc/self/fd/40', 'utf8') } catch (error) { return error.code }`
    const placement = fake.offer(await aProgram(reads))
    assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '"ENOENT"' })
  },
)
