// Acts of install.sh by themselves. deploy/e2e/storm/install.test.ts installs.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { installScript } from '@windlass/coordinator/downloads/install-script.ts'

const run = promisify(execFile)
const DEADLINE_MS = 30_000
/** Beyond what any kernel gives. */
const NOBODYS = 99_999_999

const folder = mkdtempSync(join(tmpdir(), 'windlass-install-script-'))
after(() => rmSync(folder, { recursive: true }))

/** Commands among the functions of install.sh, which itself does nothing. */
async function inScript(commands: string): Promise<string> {
  const functions = (await installScript('https://one.example', '1.0.0')).replace(/main "\$@"\n$/, '')
  return (await run('sh', ['-c', `${functions}\n${commands}`], { timeout: DEADLINE_MS })).stdout
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
    folder "$DIR"; folder "$(dirname "$CONFIG")"; record ''; record ''`,
  )
  const recorded = readFileSync(join(top, 'opt/installed'), 'utf8').split('\n')
  assert.deepEqual(
    recorded.filter((line) => /^(made|created_user)=/.test(line)),
    ['created_user=wl-made', `made=${top}/opt/versions`, `made=${top}/etc`, `made=${top}/opt`],
  )
  await inScript(`${settings}; UNDO=yes TARGET="$DIR/versions/1.0"; folder "$DIR/versions"; undo`)
  assert.deepEqual(readdirSync(top), ['userdel'])
  assert.equal(readFileSync(join(top, 'userdel'), 'utf8'), 'wl-made\n')
})

/** Where things go for a user with this environment, whose systemd has another one. */
function whereIt(environment: string, ofSystemd: string): Promise<string> {
  const others = `id() { echo 1000; }; systemctl() { printf '%s\\n' HOME=/home/me '${ofSystemd}' PATH=/bin; }`
  return inScript(`${others}; HOME=/home/me DIR='' RUN_AS='' ${environment}; places; printf '%s %s' "$CONFIG" "$UNIT"`)
}

test('the unit of a user goes where his systemd looks for it', async () => {
  const files = ['windlass-agent/agent.env', 'systemd/user/windlass-agent.service']
  assert.equal(await whereIt('', ''), files.map((file) => `/home/me/.config/${file}`).join(' '))
  assert.equal(await whereIt('XDG_CONFIG_HOME=/x', ''), `/x/${files[0]} /home/me/.config/${files[1]}`)
  assert.equal(await whereIt('', 'XDG_CONFIG_HOME=/x'), `/home/me/.config/${files[0]} /x/${files[1]}`)
})

test('a folder with a space, which no unit can name, is refused before anything is changed', async () => {
  for (const [environment, ofSystemd] of [
    ["XDG_CONFIG_HOME='/home/me/my files'", ''],
    ["XDG_STATE_HOME='/home/me/my files'", ''],
    ['', "XDG_CONFIG_HOME=$'/my files'"],
  ] as const) {
    await assert.rejects(whereIt(environment, ofSystemd.replaceAll("'", "'\\''")), {
      stderr: /A folder of XDG must be an absolute path without spaces/,
    })
  }
})
