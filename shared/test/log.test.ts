import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLog } from '../log.ts'

const LOG = join(import.meta.dirname, '../log.ts')

test('a process whose log cannot be written goes on', () => {
  const full = openSync('/dev/full', 'w')
  const source = `
    const { createLog } = await import(${JSON.stringify(LOG)})
    const log = createLog({})
    for (const name of ['one', 'two']) {
      log(name)
      // A stream tells its failure by an event of a later turn.
      await new Promise(setImmediate)
    }
    const { droppedLines } = await import(${JSON.stringify(LOG.replace('log.ts', 'log-out.ts'))})
    process.stdout.write(String(droppedLines()))`
  try {
    const ended = spawnSync(process.execPath, ['--input-type=module', '--eval', source], {
      stdio: ['ignore', 'pipe', full],
      encoding: 'utf8',
    })
    assert.deepEqual([ended.status, ended.stdout], [0, '2'])
  } finally {
    closeSync(full)
  }
})

test('a log whose reader is gone ends nobody', () => {
  const source = `
    const { createLog } = await import(${JSON.stringify(LOG)})
    const log = createLog({})
    for (let n = 0; n < 3; n++) {
      log('unread')
      await new Promise(setImmediate)
    }
    process.stdout.write('went on')`
  const command = '("$NODE" --input-type=module --eval "$SOURCE" 2>&1 >&3 | true) 3>&1'
  const env = { ...process.env, NODE: process.execPath, SOURCE: source }
  assert.equal(spawnSync('sh', ['-c', command], { env, encoding: 'utf8' }).stdout, 'went on')
})

test('a reader who takes nothing costs lines and not the memory, and hears so when it goes on', async () => {
  const source = `
    const { createLog } = await import(${JSON.stringify(LOG)})
    const { droppedLines } = await import(${JSON.stringify(LOG.replace('log.ts', 'log-out.ts'))})
    const log = createLog({})
    const text = 'x'.repeat(10_000)
    for (let n = 0; n < 1000; n++) log('unread', { text })
    process.stdout.write(String(droppedLines()))
    process.stdin.once('data', () => {
      log('read again')
      process.stdin.destroy()
    })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source])
  const [dropped] = (await once(child.stdout, 'data')) as [Buffer]
  let read = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    read += text
    // By then it has room again.
    if (read.length > 2_000_000) child.stdin.write('.')
  })
  child.stdin.on('error', () => undefined)
  await once(child, 'close')
  const lines = read
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { name: string; lines?: number; reason?: string })
  const [told] = lines.filter(({ name }) => name === 'log.dropped')
  assert.ok(Number(dropped) > 500)
  assert.deepEqual([told?.lines, told?.reason], [Number(dropped), 'nobody reads it'])
  assert.equal(lines.at(-1)!.name, 'read again')
})

test('lines that could not be written are told before the next one that can', () => {
  const lines: Record<string, unknown>[] = []
  let isFull = false
  const out = {
    write(line: string) {
      if (isFull) throw new Error('ENOSPC: no space left on device, write')
      lines.push(JSON.parse(line) as Record<string, unknown>)
    },
  }
  const log = createLog({ part: 'test' }, 'info', out)
  log('before')
  isFull = true
  for (let n = 0; n < 3; n++) log.warn('lost')
  log.debug('never wanted')
  isFull = false
  log('after')
  log('later')
  assert.deepEqual(
    lines.map(({ name }) => name),
    ['before', 'log.dropped', 'after', 'later'],
  )
  const { at, since, ...told } = lines[1]!
  const reason = 'ENOSPC: no space left on device, write'
  assert.deepEqual(told, { level: 'warn', name: 'log.dropped', part: 'test', lines: 3, reason })
  assert.ok(Number(lines[0]!['at']) <= Number(since) && Number(since) <= Number(at))
})

test('a log that goes to a pipe leaves imports as they are', () => {
  const source = `
    const { createLog } = await import('@windlass/shared/log.ts')
    createLog({})('any')
    await import('@windlass/agent/os/process-id.ts')`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', source]
  const { stderr } = spawnSync(process.execPath, args, { cwd: import.meta.dirname, encoding: 'utf8' })
  assert.match(stderr, /^\{.*"name":"any".*\}\n$/)
})
