// Programs that do wrong, through a real coordinator and a real agent. Beside each of them a healthy run has to complete.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Run } from '@windlass/shared/model/run.ts'
import { ApiError } from 'windlass/client'
import { fileInstance } from '../_kit/file-instance.ts'
import { deploy, ended, textsOf, trigger, typesOf, wholeLog } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'

const FLOOD_BYTES = 100_000_000
/** Of that nothing stays; what a collector has not collected yet is several times what is in use. */
const MOST_MIB = { agent: 150, coordinator: 300 }
const DESCRIPTOR = '{ "slug": "broken" }'

// What the host knows and no program may.
const env = { SECRET_OF_THE_HOST: 'hunter2' }
const { current } = fileInstance({ env, programs: ['healthy', 'misbehaves', 'never-ends'] })

/** Executes it beside a healthy run, which has to come to its end at the first attempt. */
async function besideHealthy(workflow: string, input?: unknown): Promise<Run> {
  const { client } = current()
  const [bad, good] = await Promise.all([trigger(client, workflow, input), trigger(client, 'healthy', {})])
  const [run, healthy] = await Promise.all([ended(client, bad), ended(client, good)])
  assert.equal(healthy.status, 'completed')
  assert.equal(healthy.attempt, 1)
  return run
}

async function refusal(files: Record<string, string>): Promise<ApiError> {
  try {
    await deploy(current().client, files)
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  return assert.fail('it was deployed')
}

test('a syntax error is refused at deploy with its file and line', async () => {
  const error = await refusal({
    'workflow.jsonc': DESCRIPTOR,
    'index.ts': "import { a } from './lib.ts'\nexport const run = a\n",
    'lib.ts': 'export const a = 1\n\nexport function ( {\n',
  })
  assert.equal(error.status, 400)
  assert.equal(error.code, 'VALIDATION_FAILED')
  assert.match(error.message, /lib\.ts:3\b/)
})

test('a program without `run` is refused at deploy', async () => {
  const error = await refusal({ 'workflow.jsonc': DESCRIPTOR, 'index.ts': 'export const walk = () => 1\n' })
  assert.equal(error.status, 400)
  assert.match(error.message, /index\.ts/)
  assert.match(error.message, /\brun\b/)
})

test('a program that throws fails with its own message and a stack in its own lines', async () => {
  const run = await besideHealthy('misbehaves', { how: 'throw' })
  assert.equal(run.status, 'failed')
  assert.equal(run.attempt, 1)
  assert.equal(run.error?.code, 'PROGRAM_FAILED')
  assert.equal(run.error.message, 'cannot go on in attempt 1')
  assert.match(String(run.error.detail?.['stack']), /breakDown \(?.*index\.ts:\d+:\d+/)
})

test('a program that exits has failed, and its exit code is told', async () => {
  const run = await besideHealthy('misbehaves', { how: 'exit' })
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.code, 'PROGRAM_EXITED')
  assert.deepEqual(run.error.detail, { exitCode: 3 })
})

test('a program that is killed starts again, as often as its descriptor allows', async () => {
  const run = await besideHealthy('misbehaves', { how: 'die' })
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.code, 'RUN_CRASHED')
  assert.match(run.error.message, /started 2 times.*SIGKILL/)
  const events = await wholeLog(current().client, run.id)
  const attempt = ['run.queued', 'run.pending', 'run.running']
  assert.deepEqual(typesOf(events), [...attempt, 'run.restarted', ...attempt, 'run.failed'])
  assert.deepEqual(textsOf(events), ['attempt 1', 'attempt 2'])
})

test('a hundred megabytes of output are in the log, and fill nobody’s memory', { timeout: 90_000 }, async (t) => {
  const parts = await Promise.all(
    (['agent', 'coordinator'] as const).map(async (part) => memoryOf(part, (await current().pidOf(part))!)),
  )
  const run = await besideHealthy('misbehaves', { how: 'flood' })
  const grown = parts.map((memory) => ({ part: memory.part, mib: memory.grownMib() }))
  t.diagnostic(grown.map(({ part, mib }) => `${part} ${mib} MiB more`).join(', '))
  assert.equal(run.status, 'completed', run.error?.message)
  const [, ...lines] = textsOf(await wholeLog(current().client, run.id))
  assert.equal(
    lines.reduce((sum, line) => sum + line.length + 1, 0),
    FLOOD_BYTES,
  )
  for (const { part, mib } of grown) assert.ok(mib < MOST_MIB[part], `the ${part} took ${mib} MiB more`)
})

/** How far a process has grown since, at the most: a deploy before has loaded the TypeScript compiler into the coordinator. */
function memoryOf<P extends string>(part: P, pid: number): { part: P; grownMib(): number } {
  const read = (field: string) =>
    Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  const before = read('VmRSS')
  // Sets the high-water mark back to where the water is.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  return { part, grownMib: () => Math.round(read('VmHWM') - before) }
}

test('a program that never ends is stopped at its timeout', async () => {
  const run = await besideHealthy('never-ends')
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.code, 'RUN_TIMED_OUT')
  assert.match(run.error.message, /1000 ms.*workflow\.jsonc/)
})

test('a value that does not fit what `run` declares fails with the path of the field', async () => {
  const run = await besideHealthy('misbehaves', { how: 'misfit' })
  assert.equal(run.error?.code, 'OUTPUT_INVALID')
  assert.equal(run.error.detail?.['path'], 'output.answer')
})

test('a value of two megabytes is refused with its size', async () => {
  const run = await besideHealthy('misbehaves', { how: 'large' })
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.code, 'OUTPUT_TOO_LARGE')
  assert.match(run.error.message, /\d{7} bytes/)
})

test('a process that a program leaves behind in a session of its own is gone with the run', async () => {
  const run = await besideHealthy('misbehaves', { how: 'escape' })
  const { output } = await current().client.runs.output({ run: run.id })
  const pid = (output as { answer: number }).answer
  assert.ok(pid > 0)
  await until(`the end of process ${pid}`, () => !existsSync(`/proc/${pid}`) || isZombie(pid))
})

function isZombie(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return true
    throw error
  }
}

test('a program sees nothing of its host’s environment', async () => {
  const run = await besideHealthy('misbehaves', { how: 'look' })
  const { output } = await current().client.runs.output({ run: run.id })
  const { environment } = output as { environment: Record<string, string> }
  const allowed = ['PATH', 'LANG', 'LC_ALL', 'TZ', 'HOME', 'TMPDIR', 'PWD', 'WINDLASS_PROCESS']
  assert.deepEqual(
    Object.keys(environment).filter((name) => !allowed.includes(name)),
    [],
  )
  assert.ok(!JSON.stringify(environment).includes('hunter2'))
})

test('two runs at once have a folder each and do not see each other’s files', async () => {
  const { client } = current()
  const ids = await Promise.all([1, 2].map(() => trigger(client, 'healthy', { takesMs: 500 })))
  const outputs = await Promise.all(
    ids.map(async (id) => {
      await ended(client, id)
      return (await client.runs.output({ run: id })).output as { folder: string; files: string[] }
    }),
  )
  assert.notEqual(outputs[0]!.folder, outputs[1]!.folder)
  for (const [index, { files }] of outputs.entries()) assert.deepEqual(files, [`mine-${ids[index]}.txt`, 'tmp'])
})
