// What install.sh leaves when it fails: what was there before.
import assert from 'node:assert/strict'
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
