// What install.sh removes after an upgrade, while programs of the agent before are there.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { installScript } from '@windlass/coordinator/downloads/install-script.ts'

const NEEDS_PROC = existsSync('/proc/self/exe') ? false : 'it needs /proc'

test('a version stays as long as programs are executed by its Node', { skip: NEEDS_PROC }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'windlass-used-version-'))
  t.after(() => rmSync(dir, { recursive: true }))
  for (const version of ['0.8', '0.9', '1.0']) {
    const bin = join(dir, 'versions', version, 'bin')
    mkdirSync(bin, { recursive: true })
    copyFileSync('/bin/sleep', join(bin, 'sleep'))
  }
  // The script itself does nothing without its last line.
  const functions = (await installScript('https://one.example', '1.0.0')).replace(/main "\$@"\n$/, '')
  const tidied = () => {
    execFileSync('sh', ['-c', `${functions}\nDIR='${dir}' TARGET='${dir}/versions/1.0' MANAGED=yes; tidy`])
    return readdirSync(join(dir, 'versions')).toSorted()
  }
  const program = spawn(join(dir, 'versions/0.9/bin/sleep'), ['300'], { stdio: 'ignore' })
  t.after(() => program.kill('SIGKILL'))
  await once(program, 'spawn')
  assert.deepEqual(tidied(), ['0.9', '1.0'])
  program.kill('SIGKILL')
  await once(program, 'exit')
  assert.deepEqual(tidied(), ['1.0'])
})
