import assert from 'node:assert/strict'
import test from 'node:test'
import { runTool } from '../../os/run-tool.ts'

const PATIENCE_MS = 20_000

test('a tool ends as it ends, and what cannot be started says so', async () => {
  const results = [
    await runTool('sh', ['-c', 'exit 42'], PATIENCE_MS),
    await runTool('sh', ['-c', 'kill -9 $$'], PATIENCE_MS),
    await runTool('no-such-tool', [], PATIENCE_MS),
  ]
  assert.deepEqual(results, [
    { exitCode: 42, signal: null },
    { exitCode: null, signal: 'SIGKILL' },
    { failed: 'spawn no-such-tool ENOENT' },
  ])
})

test('one that does not end is ended', async () => {
  assert.deepEqual(await runTool('sleep', ['3600'], 50), { exitCode: null, signal: 'SIGKILL' })
})

const skip = process.platform !== 'linux' && 'it needs /proc'

test('nothing leads from a tool to its agent', { skip }, async () => {
  const look = 'for n in 0 1 2; do [ "$(readlink /proc/$$/fd/$n)" = /dev/null ] || exit 1; done'
  assert.deepEqual(await runTool('sh', ['-c', look], PATIENCE_MS), { exitCode: 0, signal: null })
})
