// What install.sh leaves when it fails: what was there before.
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { noScriptMachine, ScriptMachine } from './_kit/script-machine.ts'

const skip = noScriptMachine

/** With an agent of root, in the version `first`; the coordinator has another one by now. */
async function aHost(t: TestContext, options = ''): Promise<ScriptMachine> {
  const host = new ScriptMachine()
  t.after(() => host.remove())
  host.serves('first')
  const { code, said } = await host.installs(`--token good${options}`)
  assert.equal(code, 0, said)
  host.serves('second')
  return host
}

test('an upgrade that finds no room for a copy of the settings leaves them as they are', { skip }, async (t) => {
  const host = await aHost(t, ' --labels gpu,eu')
  const before = host.settings()
  assert.equal(before['WINDLASS_AGENT_LABELS'], 'gpu,eu')
  const noRoom = 'cat() { [ "$1" != "$CONFIG" ] || { echo No space left on device >&2; return 1; }; command cat "$@"; }'
  const { code, said } = await host.installs('--upgrade', noRoom)
  assert.equal(code, 1, said)
  assert.deepEqual(host.settings(), before)
  assert.deepEqual(host.lines('starts'), ['first as root'])
})

test('an upgrade to another user that fails goes back to the former one', { skip }, async (t) => {
  const host = await aHost(t)
  const before = host.settings()
  assert.equal(before['WINDLASS_AGENT_RUN_UIDS'], '700000-700999')
  host.startsInVain(true)
  const { code, said } = await host.installs('--upgrade --user wlsvc')
  assert.equal(code, 1)
  assert.match(said, /Going back to the version in .*, as user root/)
  assert.deepEqual(host.lines('starts'), ['first as root', 'second as wlsvc', 'first as root'])
  assert.deepEqual(host.settings(), before)
  assert.equal(statSync(host.config).mode & 0o777, 0o600)
  assert.deepEqual(host.lines('chowns').slice(-2), [`-R root: ${host.state}`, `root:65534 ${host.config}`])
  assert.deepEqual([host.recorded('run_as'), host.recorded('created_user')], ['', ''])
  assert.deepEqual(host.lines('users'), ['nobody'])
  host.startsInVain(false)
  const again = await host.installs('--upgrade')
  assert.equal(again.code, 0, again.said)
  assert.equal(host.lines('starts').at(-1), 'second as root')
})

test('a repair as another user that fails goes back to the former one, in the same version', { skip }, async (t) => {
  const host = await aHost(t)
  host.serves('first')
  host.startsInVain(true)
  assert.equal((await host.installs('--token good --user nobody')).code, 1)
  assert.deepEqual(host.lines('starts'), ['first as root', 'first as nobody', 'first as root'])
  assert.deepEqual(host.lines('users'), ['nobody'])
  assert.equal(host.versions().length, 1)
})

test(
  'a call with another user whose registration is refused changes nothing for the next call',
  { skip },
  async (t) => {
    const host = await aHost(t)
    const before = host.settings()
    rmSync(join(host.state, 'identity.json'))
    const refused = await host.installs('--token bad --user wlsvc')
    assert.equal(refused.code, 1)
    assert.deepEqual(host.settings(), before)
    assert.deepEqual(host.lines('users'), ['nobody'])
    // Programs may be at work in their own folders there.
    assert.deepEqual(host.lines('chowns'), [])
    const next = await host.installs('--token good')
    assert.equal(next.code, 0, next.said)
    assert.deepEqual(host.lines('starts'), ['first as root', 'second as root'])
    assert.deepEqual(host.settings(), before)
  },
)

test('nor does one that is killed then', { skip }, async (t) => {
  const host = await aHost(t)
  assert.equal((await host.installs('--token good --user wlsvc', 'register() { kill -KILL $$; }')).code, null)
  const next = await host.installs('--upgrade')
  assert.equal(next.code, 0, next.said)
  assert.equal(host.lines('starts').at(-1), 'second as root')
  assert.equal(host.recorded('created_user'), 'wlsvc')
})

test('a failed way back to a version that programs still use leaves that version', { skip }, async (t) => {
  const host = await aHost(t)
  const [first] = host.versions()
  assert.equal((await host.installs('--upgrade', 'tidy() { :; }')).code, 0)
  host.serves('first')
  host.startsInVain(true)
  assert.equal((await host.installs('--upgrade')).code, 1)
  assert.deepEqual(host.lines('starts').slice(-2), ['first as root', 'second as root'])
  assert.equal(host.versions().length, 2)
  assert.ok(host.versions().includes(first!))
})

/** Moments at which a first call is killed: while it unpacks, and when it has made settings, state, or the user. */
const MOMENTS = {
  unpacks: 'tar() { mkdir "$UNPACKED/inside"; kill -KILL $$; }',
  settings: 'keep_copy() { kill -KILL $$; }',
  state: 'mkdir() { command mkdir "$@"; [ "${3-}" != "$STATE" ] || kill -KILL $$; }',
  user: 'useradd() { command useradd "$@"; kill -KILL $$; }',
  registers: 'register() { kill -KILL $$; }',
}

function aBareHost(t: TestContext): ScriptMachine {
  const host = new ScriptMachine()
  t.after(() => host.remove())
  host.serves('first')
  return host
}

for (const [moment, killed] of Object.entries(MOMENTS)) {
  test(`a failed call leaves nothing of one that was killed before it (${moment})`, { skip }, async (t) => {
    const host = aBareHost(t)
    const untouched = host.files()
    assert.equal((await host.installs('--token good --user wlsvc', killed)).code, null)
    assert.notDeepEqual(host.files(), untouched)
    const { code, said } = await host.installs('--token bad --user wlsvc')
    assert.equal(code, 1, said)
    assert.deepEqual(host.files(), untouched)
    assert.deepEqual(host.lines('users'), ['nobody'])
  })
}

test('nor does one that fails undo what was there before both', { skip }, async (t) => {
  const host = aBareHost(t)
  mkdirSync(host.state)
  mkdirSync(dirname(host.config))
  for (const file of [host.config, join(host.state, 'spool')]) writeFileSync(file, '')
  const untouched = host.files()
  assert.equal((await host.installs('--token good', MOMENTS.registers)).code, null)
  assert.equal((await host.installs('--token bad')).code, 1)
  assert.deepEqual(host.files(), untouched)
})

test('a first call that fails leaves settings that were there as they were', { skip }, async (t) => {
  const host = aBareHost(t)
  mkdirSync(dirname(host.config))
  writeFileSync(host.config, 'WINDLASS_URL="https://other.example"\nWINDLASS_AGENT_LABELS="gpu"\n')
  const before = host.settings()
  assert.equal((await host.installs('--token bad --labels eu')).code, 1)
  assert.deepEqual(host.settings(), before)
})

test('what a killed call has made is known to the removal of the agent', { skip }, async (t) => {
  const host = aBareHost(t)
  assert.equal((await host.installs('--token good --user wlsvc', MOMENTS.user)).code, null)
  assert.equal((await host.installs('--token good --user wlsvc')).code, 0)
  assert.equal(host.recorded('created_user'), 'wlsvc')
  const made = host.lines('opt/windlass-agent/installed').filter((line) => line.startsWith('made='))
  for (const folder of [host.dir, dirname(host.config)]) assert.ok(made.includes(`made=${folder}`), folder)
})
