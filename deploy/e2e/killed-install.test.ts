// What a call of install.sh leaves that is killed, and what the next one makes of it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { PROJECT } from '../tools/source-files.ts'

const run = promisify(execFile)
const DEADLINE_MS = 30_000
/** Beyond what any kernel gives. */
const NOBODYS = 99_999_999
const SCRIPT = join(PROJECT, 'deploy/install/install.sh')

const folder = mkdtempSync(join(tmpdir(), 'windlass-killed-install-'))
after(() => rmSync(folder, { recursive: true }))

/** Commands among the functions of install.sh, which itself does nothing. */
async function inScript(commands: string): Promise<void> {
  const functions = readFileSync(SCRIPT, 'utf8').replace(/main "\$@"\n$/, '')
  await run('sh', ['-c', `${functions}\n${commands}`], { timeout: DEADLINE_MS })
}

test('what a killed call has begun to unpack goes with the next one, and what another call is at stays', async () => {
  const dir = mkdtempSync(join(folder, 'killed-'))
  for (const name of ['1.0', '0.9', `.unpacking-${NOBODYS}`, `.unpacking-${process.pid}`])
    mkdirSync(join(dir, 'versions', name, 'inside'), { recursive: true })
  await inScript(`DIR='${dir}' TARGET="$DIR/versions/1.0" MANAGED=yes; tidy`)
  assert.deepEqual(readdirSync(join(dir, 'versions')).toSorted(), [`.unpacking-${process.pid}`, '1.0'])
})

test('a call that fails undoes what a killed one before it had made', async () => {
  const top = mkdtempSync(join(folder, 'undone-'))
  const settings = `DIR='${top}/opt' CONFIG='${top}/etc/agent.env' STATE='${top}/var' UNIT=u LINK=l
    MODE=user RUN_AS=nobody
    RECORD="$DIR/installed"; userdel() { printf '%s\n' "$1" >>'${top}/userdel'; }`
  // This one is killed here: its trap is never called.
  await inScript(
    `${settings}; RUN_AS=wl-made NEW_USER=yes
    folder "$DIR"; folder "$(dirname "$CONFIG")"; record; record`,
  )
  const recorded = readFileSync(join(top, 'opt/installed'), 'utf8').split('\n')
  assert.deepEqual(
    recorded.filter((line) => /^(made|created_user)=/.test(line)),
    ['created_user=wl-made', `made=${top}/etc`, `made=${top}/opt`],
  )
  await inScript(`${settings}; UNDO=yes TARGET="$DIR/versions/1.0"; folder "$DIR/versions"; undo`)
  assert.deepEqual(readdirSync(top), ['userdel'])
  assert.equal(readFileSync(join(top, 'userdel'), 'utf8'), 'wl-made\n')
})
