// A proxy answers install.sh in place of the coordinator.
import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { noScriptMachine, ScriptMachine } from './_kit/script-machine.ts'

const skip = noScriptMachine

/** `sleep` is noted and does not last. */
function aHost(t: TestContext): ScriptMachine {
  const host = new ScriptMachine()
  t.after(() => host.remove())
  host.serves('first')
  host.command('sleep', 'echo "$@" >>@ROOT@/sleeps')
  return host
}

test('what a proxy does not find for a moment is asked for again', { skip }, async (t) => {
  const host = aHost(t)
  renameSync(join(host.root, 'bin/curl'), join(host.root, 'bin/true-curl'))
  host.command('curl', '[ -e @ROOT@/sleeps ] || exit 22\nexec true-curl "$@"')
  const { code, said } = await host.installs('--token good')
  assert.equal(code, 0, said)
  assert.deepEqual(host.lines('sleeps'), ['5'])
})

test('what stays away is said to be away', { skip }, async (t) => {
  const host = aHost(t)
  host.command('curl', 'exit 22')
  const { code, said } = await host.installs('--token good')
  assert.equal(code, 1)
  assert.match(said, /SHA256SUMS cannot be fetched\./)
})

test('the page of a proxy is not taken for a coordinator without an agent for this machine', { skip }, async (t) => {
  const host = aHost(t)
  host.command('curl', 'for name; do case $name in /*) to=$name ;; esac; done; echo "<html>Log in</html>" >"$to"')
  const { code, said } = await host.installs('--token good')
  assert.equal(code, 1)
  assert.match(said, /SHA256SUMS is not of a coordinator: of a proxy\?/)
})
