import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { endLeftovers, leftovers, processesMarked } from '../../tools/leftovers.ts'

const linux = process.platform === 'linux'

/** A process that stays until it is ended; its first byte says that it is there. */
async function aProcess(options: { cwd?: string; env: Record<string, string> }) {
  const child = spawn(process.execPath, ['-e', 'process.stdout.write("."); setInterval(() => {}, 1e6)'], {
    ...options,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  return { pid: child.pid, ended }
}

test('a process is found by its environment or its folder, and ended', { skip: !linux && 'needs /proc' }, async (t) => {
  const mark = `left-${randomBytes(6).toString('hex')}`
  const folder = mkdtempSync(path.join(tmpdir(), `${mark}-`))
  t.after(() => rmSync(folder, { recursive: true }))
  const byVariable = await aProcess({ env: { MARK: mark } })
  const byFolder = await aProcess({ env: {}, cwd: folder })

  const found = await leftovers(mark, 0)
  assert.deepEqual(
    found.map((f) => f.pid).sort((a, b) => a - b),
    [byVariable.pid, byFolder.pid].sort((a, b) => Number(a) - Number(b)),
  )
  assert.ok(found.every((f) => f.command.includes(process.execPath)))

  endLeftovers(found)
  await Promise.all([byVariable.ended, byFolder.ended])
  assert.deepEqual(processesMarked(mark), [])
  // Ending what is gone is no error.
  endLeftovers([{ pid: 2 ** 22 - 1, command: '' }])
})
