import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { startPart } from '../../start/part.ts'

const PIECE_BYTES = 32 * 1024

test('the log of a part is kept in three pieces, while the part goes on', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'windlass-pieces-'))
  const logFile = join(folder, 'talks.log')
  const said: string[] = []
  const say = (sentence: string) => void said.push(sentence)
  const part = startPart({
    name: 'talker',
    module: new URL('./programs/talks.ts', import.meta.url).href,
    nodeArgs: ['--disable-warning=ExperimentalWarning'],
    env: process.env,
    logFile,
    tell: { json: true, say, fail: say, answer: () => undefined },
    stopMs: 5000,
    lookMs: 5,
    pieceBytes: PIECE_BYTES,
  })
  t.after(async () => {
    await part.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  await part.ready
  const lastOf = (file: string) => Number(/"n":(\d+)[^\n]*\n$/.exec(readFileSync(file, 'utf8'))?.[1])
  await untilPolled('the third piece', () => existsSync(`${logFile}.2`))
  const before = lastOf(`${logFile}.2`)
  await untilPolled('the end of that piece', () => lastOf(`${logFile}.2`) > before)
  await part.stop()
  assert.deepEqual(readdirSync(folder).toSorted(), ['talks.log', 'talks.log.1', 'talks.log.2'])
  for (const piece of [`${logFile}.1`, `${logFile}.2`]) {
    assert.ok(statSync(piece).size >= PIECE_BYTES)
    assert.equal(statSync(piece).mode & 0o777, 0o600)
    for (const line of readFileSync(piece, 'utf8').trim().split('\n')) JSON.parse(line)
  }
  assert.deepEqual(said, [], 'it went on all the time')
})
