// What only a terminal shows: hidden input, widths, colours, Ctrl-C, and the Tab key.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { PROJECT } from '../../tools/source-files.ts'
import { type Instance, makeHome, startInstance } from '../_kit/instance.ts'
import { ended } from '../_kit/runs.ts'
import { openTerminal, type Terminal, whyNoTmux } from '../_kit/tmux.ts'

const skip = whyNoTmux()
const INPUT = `'{"names":["Ada"]}'`
const temp = makeHome()
const folder = mkdtempSync(join(tmpdir(), 'windlass-e2e-terminal-'))
let instance: Instance
let terminal: Terminal

before(async () => {
  if (skip) return
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const script = `#!/bin/sh\nexec '${process.execPath}' '${PROJECT}/sdk/cli/windlass.mjs' "$@"\n`
  writeFileSync(join(bin, 'windlass'), script, { mode: 0o755 })
  const settings = { WINDLASS_START_EXAMPLE: 'false', WINDLASS_SECRET_KEY: randomBytes(32).toString('base64') }
  instance = await startInstance({ home: temp.home, env: settings })
  const env = { PATH: `${bin}:${process.env['PATH']}`, HOME: folder, WINDLASS_HOME: temp.home }
  terminal = openTerminal({ columns: 80, env, cwd: folder })
})

after(async () => {
  terminal?.close()
  await instance?.stop()
  temp.remove()
  rmSync(folder, { recursive: true, force: true })
})

test('the first minutes fit into 80 columns', { skip }, async () => {
  terminal.type('windlass init hello')
  await terminal.shows(/Next: cd hello && npm install [^]*windlass deploy/)
  terminal.type(`windlass deploy hello && windlass run hello -i ${INPUT}`)
  await terminal.shows(/✔ hello completed in [^]*"Hello, Ada! It is .*"/)
  await terminal.clear()
  for (const list of ['runs list', 'workflows list', 'keys list', 'runners list']) {
    terminal.type(`windlass ${list}; echo over`)
    const screen = await terminal.shows(/\nover/)
    const [, head = '', ...rows] = screen.split('\n').slice(0, screen.split('\n').indexOf('over'))
    assert.match(head, /^[A-Z]+ /, list)
    // A row that were too long would go on in a line that begins with no name.
    for (const row of rows) assert.match(row, /^(\w+_\w{26}|hello|\d more columns?) /, `${list}: ${row}`)
    await terminal.clear()
  }
})

test('what stands out is coloured, and nothing is with NO_COLOR', { skip }, async () => {
  const red = '\u001b[31m'
  terminal.type('windlass runs get nothing')
  await terminal.shows(/\nerror: /)
  assert.ok(terminal.colours().includes(`${red}error:`))
  await terminal.clear()
  terminal.type('NO_COLOR=1 windlass runs get nothing')
  await terminal.shows(/\nerror: /)
  assert.ok(!terminal.colours().includes(red))
  await terminal.clear()
})

test('a secret is asked for without being shown, backspace works, Ctrl-C sets nothing', { skip }, async () => {
  terminal.type('windlass secrets set TOKEN')
  await terminal.shows(/\nTOKEN: ?$/)
  terminal.text('hunter22')
  terminal.keys('BSpace')
  terminal.keys('Enter')
  const screen = await terminal.shows(/TOKEN is set for the org/)
  assert.doesNotMatch(screen, /hunter/)
  writeFileSync(join(folder, 'hello/index.ts'), `export const run = () => process.env.TOKEN === 'hunter2'\n`)
  terminal.type('windlass deploy hello && windlass run hello')
  await terminal.shows(/\ntrue/)
  await terminal.clear()
  terminal.type('windlass secrets set OTHER')
  await terminal.shows(/\nOTHER: ?$/)
  terminal.keys('C-c')
  await terminal.shows(/Nothing was set/)
  terminal.type('echo "code $?"')
  await terminal.shows(/code 130/)
  await terminal.clear()
})

test('several pasted lines are refused instead of cut', { skip }, async () => {
  terminal.type('windlass secrets set PEM')
  await terminal.shows(/\nPEM: ?$/)
  terminal.text('line 1\nline 2\n')
  await terminal.shows(/Several lines were pasted/)
  // Whatever of it the prompt has not taken is for the shell, which does not know it.
  // A key that comes while the command ends would be lost.
  await terminal.shows(/\n\$[^\n]*$/)
  terminal.keys('C-c')
  await terminal.shows(/\^C\n\$$/)
  await terminal.clear()
})

test('dev shows a broken program and the mended one, and ends at once on Ctrl-C', { skip }, async () => {
  const file = join(folder, 'hello/index.ts')
  writeFileSync(file, `import { sleep } from 'windlass'\nexport const run = () => sleep('1h')\n`)
  terminal.type('windlass dev hello --run')
  await terminal.shows(/✔ hello, version \d, in [^]*sleeping/)
  writeFileSync(file, readFileSync(file, 'utf8').replace('run =', 'run'))
  await terminal.shows(/✖ index\.ts:2:\d+: .*\n {2}still watching/)
  writeFileSync(file, 'export const run = () => "mended"\n')
  await terminal.shows(/"mended"/)
  terminal.keys('C-c')
  await terminal.shows(/\^C/)
  terminal.type('echo "code $?"')
  await terminal.shows(/code 130/)
  const { runs } = await instance.client.runs.list({ workflow: 'hello' })
  const statuses = await Promise.all(runs.slice(0, 2).map(async ({ id }) => (await ended(instance.client, id)).status))
  assert.deepEqual(statuses, ['completed', 'cancelled'])
  await terminal.clear()
})

test('Tab completes commands, flags and the names that the service knows', { skip }, async () => {
  terminal.type('source <(windlass completion bash); echo sourced')
  await terminal.shows(/\nsourced/)
  terminal.text('windlass run he')
  await completed(/\$ windlass run hello$/)
  terminal.text('--envi')
  await completed(/\$ windlass run hello --environment$/)
  terminal.keys('C-c')
})

const TABS = 5

/** Names that take longer than a second are not waited for, as on any busy machine: one presses the key again. */
async function completed(what: RegExp, tabs = 1): Promise<void> {
  terminal.keys('Tab')
  const outcome = await terminal.shows(what, 6_000).catch((error: unknown) => error)
  if (!(outcome instanceof Error)) return
  if (tabs === TABS) throw outcome
  await completed(what, tabs + 1)
}
