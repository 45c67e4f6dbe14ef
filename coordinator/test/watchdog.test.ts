import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { untilPolled } from './_kit/until.ts'

test('being ready is said again with each sign of life, for systemd drops words of those who have ended', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'windlass-watchdog-'))
  const heard = join(folder, 'heard')
  writeFileSync(heard, '')
  writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$*" >> '${heard}'\n`, { mode: 0o755 })
  const program = `
    import { createLog } from ${JSON.stringify(import.meta.resolve('@windlass/shared/log.ts'))}
    import { sayAlive } from ${JSON.stringify(import.meta.resolve('../watchdog.ts'))}
    sayAlive(createLog({}), { watchdogMs: 300 })
    setInterval(() => undefined, 1000)`
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
    {
      env: { PATH: `${folder}${delimiter}${process.env['PATH']}` },
      stdio: 'inherit',
    },
  )
  const gone = new Promise((resolve) => child.once('exit', resolve))
  t.after(async () => {
    child.kill('SIGKILL')
    await gone
    rmSync(folder, { recursive: true, force: true })
  })
  const states = () => readFileSync(heard, 'utf8').split('\n').filter(Boolean)
  await untilPolled('three words', () => states().length >= 3)
  assert.deepEqual(states().slice(0, 3).toSorted(), ['READY=1', 'READY=1 WATCHDOG=1', 'READY=1 WATCHDOG=1'])
})
