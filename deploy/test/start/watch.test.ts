import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { startPart } from '../../start/part.ts'
import { createWatch } from '../../start/watch.ts'

test('a part whose event loop stands still is killed and started again', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'windlass-watch-'))
  const said: string[] = []
  const ready: { pid: number }[] = []
  const say = (sentence: string) => {
    said.push(sentence)
    announce()
  }
  const part = startPart({
    name: 'sleeper',
    module: new URL('./programs/stuck.ts', import.meta.url).href,
    nodeArgs: ['--disable-warning=ExperimentalWarning'],
    env: { ...process.env, STUCK_MARK: join(home, 'stuck') },
    logFile: undefined,
    tell: { json: true, say, fail: say, answer: () => undefined },
    stopMs: 5000,
    lookMs: 20,
    onMessage(message) {
      ready.push(message as { pid: number })
      announce()
    },
  })
  t.after(async () => {
    await part.stop()
    rmSync(home, { recursive: true, force: true })
  })
  await until('the next start', () => ready.length >= 2, { more: () => said.join('\n') })
  assert.notEqual(ready[0]!.pid, ready[1]!.pid)
  assert.match(said[0]!, /event loop stands still/)
  assert.match(said[1]!, /SIGKILL.*Starting it again/)
})

test('one is watched from its first word on, and not while it does not want to be', () => {
  const watch = createWatch(3)
  const looks = (count: number) => Array.from({ length: count }, () => watch.look()).some(Boolean)
  assert.ok(!looks(100), 'it may still be starting')
  watch.heard({ alive: true })
  assert.ok(!looks(3))
  watch.heard({ alive: true })
  assert.ok(!looks(3), 'a word makes up for all before it')
  watch.heard({ alive: false })
  assert.ok(!looks(100), 'it stands still for a debugger')
  watch.heard({ alive: true })
  assert.ok(looks(4))
})
