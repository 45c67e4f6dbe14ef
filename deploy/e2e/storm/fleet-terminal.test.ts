// What only a terminal shows of the fleet: the line of a drain that is rewritten, colours, and questions before what cannot be undone.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { aRunningAgent, end } from '../../../coordinator/test/_kit/agent.ts'
import type { Held } from '../../../coordinator/test/_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun } from '../../../coordinator/test/_kit/coordinator.ts'
import type { TestCoordinator } from '../../../coordinator/test/_kit/coordinator.ts'
import { aWorkflow } from '../../../coordinator/test/_kit/workflow.ts'
import { PROJECT } from '../../tools/source-files.ts'
import { openTerminal, whyNoTmux } from '../_kit/tmux.ts'
import type { Terminal } from '../_kit/tmux.ts'

const skip = whyNoTmux()
const folder = mkdtempSync(path.join(tmpdir(), 'windlass-e2e-fleet-terminal-'))
let c: TestCoordinator
let terminal: Terminal
let held: Held

before(async () => {
  if (skip) return
  c = await aCoordinatorOfItsOwn()
  const { slug } = await aWorkflow(c, { slug: 'a-rather-long-name-of-a-workflow' })
  await aRun(c, { workflow: slug })
  held = await aRunningAgent(c, { name: 'east-1' })
  const bin = path.join(folder, 'bin')
  mkdirSync(bin)
  const script = `#!/bin/sh\nexec '${process.execPath}' '${PROJECT}/sdk/cli/windlass.mjs' "$@"\n`
  writeFileSync(path.join(bin, 'windlass'), script, { mode: 0o755 })
  const service = { WINDLASS_URL: c.url, WINDLASS_API_KEY: c.apiKey, WINDLASS_ORG: c.org }
  const env = { PATH: `${bin}:${process.env['PATH']}`, HOME: folder, ...service }
  terminal = openTerminal({ columns: 80, env, cwd: folder })
})

after(async () => {
  terminal?.close()
  held?.agent.close()
  await c?.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('a drain shows what is left in one line that counts down, and Ctrl-C leaves it in place', { skip }, async () => {
  terminal.type('windlass runners drain east-1 --wait')
  const first = await terminal.shows(/⠋|⠙|⠹|⠸|⠼|⠴|⠦|⠧|⠇|⠏/)
  assert.match(first, /east-1: 1 executing, 0 parked, 0 offered left, (1 h 0|59) min/)
  const seconds = /59 min (\d+) s/
  const early = await terminal.shows(seconds)
  const said = seconds.exec(early)?.[0] ?? ''
  const later = await terminal.shows(new RegExp(`59 min (?!${said.slice(7)})\\d+ s`))
  // Rewritten, and not broken over two rows, though it is longer than the terminal is wide.
  assert.equal(later.match(/executing/g)?.length, 1)
  terminal.keys('C-c')
  await terminal.shows(/No longer waiting; the drain of east-1 goes on/)
  terminal.type('echo "code $?"')
  await terminal.shows(/code 130/)
  await terminal.clear()
  terminal.type('windlass runners list')
  await terminal.shows(/east-1 +default +draining/)
  assert.ok(terminal.colours().includes('\u001b[33mdraining'))
  await terminal.clear()
})

test('the last run ends, and with it the drain', { skip }, async () => {
  terminal.type('windlass runners drain east-1 --wait; echo "code $?"')
  await terminal.shows(/1 executing/)
  await held.link.report(held.offer, 2, end({ how: 'returned', outputText: '1' }))
  const screen = await terminal.shows(/east-1 is drained \(epoch \d+\)\ncode 0/)
  assert.doesNotMatch(screen, /executing/)
  await terminal.clear()
})

test('before a machine is shut out for good one is asked, and without a yes nothing happens', { skip }, async () => {
  terminal.type('windlass runners revoke east-1')
  await terminal.shows(/Shut east-1 out for good, and kill what it executes\? \[y\/N\]/)
  terminal.keys('Enter')
  await terminal.shows(/Nothing was changed/)
  await terminal.clear()
  terminal.type('windlass runners revoke east-1')
  await terminal.shows(/\[y\/N\]/)
  terminal.keys('C-c')
  await terminal.shows(/Nothing was changed/)
  await terminal.clear()
  terminal.type('windlass runners revoke east-1')
  await terminal.shows(/\[y\/N\]/)
  terminal.type('y')
  await terminal.shows(/east-1 is revoked/)
})
