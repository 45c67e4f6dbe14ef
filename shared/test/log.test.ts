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
  const lines = linesOf(read)
  const [told] = lines.filter(({ name }) => name === 'log.dropped')
  assert.ok(Number(dropped) > 500)
  assert.ok(told)
  assert.equal(told.reason, 'nobody reads it')
  assert.equal(told.lines! + lines.filter(({ name }) => name === 'unread').length, 1000)
  assert.equal(lines.at(-1)!.name, 'read again')
})

interface Line {
  name: string
  lines?: number
  reason?: string
  error?: string
}

const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line)

/** A process that logs `count` lines that nobody reads, and one more, says so on stdout, and ends by `end`. */
function unreadOf(count: number, end: string, before = '') {
  const source = `
    const { writeSync } = await import('node:fs')
    const { createLog, watchUncaught } = await import(${JSON.stringify(LOG)})
    ${before}
    const log = createLog({})
    const text = 'x'.repeat(150)
    for (let n = 0; n < ${count}; n++) log('unread', { text })
    log.error('last word')
    writeSync(1, 'logged')
    ${end}`
  return spawn(process.execPath, ['--input-type=module', '--eval', source])
}

/** The end of a process waits for its reader for a second, which is as long here as the reader needs. */
const STILL = 'performance.now = () => 0'

async function readLate(child: ReturnType<typeof unreadOf>): Promise<Line[]> {
  await once(child.stdout, 'data')
  let read = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (read += text))
  await once(child, 'close')
  return linesOf(read)
}

test('a process that ends takes its last lines to a reader who comes late', async () => {
  const child = unreadOf(3000, 'process.exit(3)', STILL)
  const lines = await readLate(child)
  assert.deepEqual([child.exitCode, lines.length, lines.at(-1)?.name], [3, 3001, 'last word'])
})

test('an error that nobody catches is told with its stack to a reader who comes late', async () => {
  const watch = `${STILL}\nwatchUncaught((error) => log.error('failed', { error }))`
  const child = unreadOf(3000, `throw new Error('boom')`, watch)
  const lines = await readLate(child)
  assert.deepEqual([child.exitCode, lines.length, lines.at(-1)?.name], [1, 3002, 'failed'])
  assert.match(lines.at(-1)!.error!, /^Error: boom\n +at /)
})

test('what was dropped before the end is counted, and the last line of all comes', async () => {
  for (const end of ['', 'process.exit(0)']) {
    const lines = await readLate(unreadOf(30_000, end, STILL))
    const gaps = lines.filter(({ name }) => name === 'log.dropped').map((line) => line.lines!)
    const count = lines.filter(({ name }) => name === 'unread').length
    assert.deepEqual([gaps.length, gaps[0]! + count, lines.at(-1)?.name], [1, 30_000, 'last word'])
    assert.ok(gaps[0]! > 1000)
  }
})

test('a process ends also when nobody ever reads its last lines', async () => {
  const child = unreadOf(3000, 'process.exit(3)')
  const [code] = (await once(child, 'exit')) as [number]
  assert.equal(code, 3)
  child.stderr.destroy()
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

/** What a process writes on a socket that is its stderr, where systemd has told it of this journal. */
function loggedUnder(journal: string): string {
  const source = `
    const { readlinkSync } = await import('node:fs')
    const own = readlinkSync('/proc/self/fd/2').replace(/[^0-9]/g, '')
    process.env.JOURNAL_STREAM = ${JSON.stringify(journal)}.replace('own', own)
    const { createLog } = await import(${JSON.stringify(LOG)})
    const log = createLog({}, 'debug')
    log.debug('a')
    log('b')
    log.warn('c')
    log.error('d')`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', source]
  return spawnSync(process.execPath, args, { encoding: 'utf8' }).stderr.replace(/"at":\d+,/g, '')
}

test('a journal is told the priority of each line, and nobody else', { skip: process.platform !== 'linux' }, () => {
  const lines = ['debug', 'info', 'warn', 'error'].map((level, n) => JSON.stringify({ level, name: 'abcd'[n] }))
  const [debug, info, warn, error] = lines
  assert.equal(loggedUnder('9:own'), `<7>${debug}\n${info}\n<4>${warn}\n<3>${error}\n`)
  // Of the process that has started it.
  assert.equal(loggedUnder('9:1'), `${lines.join('\n')}\n`)
  assert.equal(loggedUnder(''), `${lines.join('\n')}\n`)
})
