// A proxy loses the answer after the service has done what was asked.
import assert from 'node:assert/strict'
import { rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { exampleOf } from '@windlass/shared/ops/words.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import type { Answerer } from '../_kit/fake-service.ts'
import { SESSION, startFake } from '../_kit/fake-service.ts'
import { changes, startLosingProxy } from '../_kit/losing-proxy.ts'
import type { Loss } from '../_kit/losing-proxy.ts'
import { folderOf, goingCli, runCli } from '../_kit/run-cli.ts'
import { aVersion, aWorkflow } from '../_kit/samples.ts'

const LOSSES: readonly Loss[] = ['drop', '502', 'half']
const env = { WINDLASS_API_KEY: SESSION }
const CONNECTION = newId('conn')
const FILES = { 'workflow.jsonc': '{ "slug": "hello" }', 'index.ts': 'export const run = () => 0\n' }

/** A service that does what it is asked, behind a proxy that loses what it says to changes. */
async function losing(t: TestContext) {
  const rows = ['webhooks.set', 'webhooks.rotate', 'connections.create', 'connections.setSecret', 'secrets.set']
  const done = Object.fromEntries(rows.map((id): [string, Answerer] => [id, () => exampleOf({ id }).output ?? {}]))
  const fake = await startFake(t, {
    ...done,
    'workflows.update': () => ({ workflow: aWorkflow(), version: aVersion() }),
    'workflows.createVersion': () => ({ version: aVersion() }),
  })
  const proxy = await startLosingProxy(t, fake.url)
  proxy.loses = { how: 'drop', what: changes }
  return { ...fake, proxy }
}

test('a lost answer to a change is told as one, with where it shows and what to do', async (t) => {
  const { proxy, asked } = await losing(t)
  const folder = await folderOf(t, FILES)
  const commands = [
    [['deploy', folder], 'windlass workflows versions hello shows whether it was done all the same'],
    [['deploy', folder, '--no-promote'], 'windlass workflows versions hello shows whether'],
    [['webhooks', 'set', 'hello', '--auth', 'bearer'], 'windlass webhooks get hello shows whether'],
    [['webhooks', 'rotate', 'hello'], 'windlass webhooks get hello shows .*: rotate again, which shows a new one'],
    [['connections', 'create', 'hub', '--kind', 'github'], 'windlass connections list shows .* set-secret <conn'],
    [['connections', 'set-secret', CONNECTION, '--make'], `windlass connections get ${CONNECTION} shows .*same again`],
    [['secrets', 'set', 'TOKEN'], 'windlass secrets list shows .*; the same again does no harm: windlass secrets set'],
  ] as const
  for (const [index, [args, next]] of commands.entries()) {
    const how = LOSSES[index % LOSSES.length]!
    proxy.loses = { how, what: changes }
    const before = asked.length
    const { code, stdout, stderr } = await runCli([...args], { url: proxy.url, env, input: 'x' })
    assert.deepEqual([code, stdout, asked.length - before], [how === '502' ? 1 : 5, '', 1], stderr)
    assert.match(stderr, new RegExp(`It may have been done\\.\\nNext: ${next}`), `${how}: ${args.join(' ')}`)
    assert.doesNotMatch(stderr, /Cannot reach|npm start|whoami/)
  }
})

test('with --json a script can tell what may have been done from what was not', async (t) => {
  const { url, proxy, answers } = await losing(t)
  answers['runs.trigger'] = answers['webhooks.rotate']!
  const detailOf = async (args: string[], to: string) => {
    const { stderr } = await runCli([...args, '--json'], { url: to, env })
    return (JSON.parse(stderr) as { error: { code: string; detail?: object } }).error
  }
  for (const how of LOSSES)
    for (const args of [
      ['run', 'hello'],
      ['webhooks', 'rotate', 'hello'],
    ]) {
      proxy.loses = { how, what: changes }
      const { code, detail } = await detailOf(args, proxy.url)
      assert.deepEqual([code, detail], [how === '502' ? 'BAD_ANSWER' : 'UNREACHABLE', { mayBeDone: true }])
    }
  const { code, detail } = await detailOf(['run', 'hello'], 'http://127.0.0.1:1')
  assert.deepEqual([code, detail], ['UNREACHABLE', undefined])
  answers['webhooks.get'] = (_args, response) => void response.destroy()
  assert.equal((await detailOf(['webhooks', 'get', 'hello'], url)).detail, undefined)
})

test('what the service is sure to have left undone is not said to be done perhaps', async (t) => {
  const { url, answers } = await losing(t)
  const message = 'Others have changed the same for longer than a request waits. Nothing was written; try again.'
  answers['secrets.set'] = (_args, response) => {
    const error = { code: 'UNAVAILABLE', message, detail: { mayBeDone: false } }
    response.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
  }
  const { code, stderr } = await runCli(['secrets', 'set', 'TOKEN'], { url, env, input: 'x' })
  assert.deepEqual([code, stderr], [5, `error: ${message}\nNext: wait a little, then again: windlass secrets set\n`])
})

/** Keeps the files of the newest version, as the service does. */
async function deploying(t: TestContext) {
  const folder = await folderOf(t, FILES)
  let current: unknown
  let version = 0
  const fake = await startFake(t, {
    'workflows.update': ({ files }) => {
      version++
      current = { workflow: aWorkflow({ version }), version: aVersion({ version }), files }
      return current
    },
    'workflows.get': () => current ?? exampleOf({ id: 'workflows.get' }).output,
  })
  const proxy = await startLosingProxy(t, fake.url)
  const save = async (returned: string) => {
    await writeFile(path.join(folder, '.index.ts.new'), `export const run = () => ${returned}\n`)
    await rename(path.join(folder, '.index.ts.new'), path.join(folder, 'index.ts'))
  }
  const asks = (id: string) => fake.asked.filter((each) => each.id === id).length
  return { ...fake, folder, proxy, save, asks, current: () => current }
}

test('windlass dev makes one version of a save whose answer is lost, and goes on with it', async (t) => {
  const { folder, proxy, save, asks } = await deploying(t)
  proxy.loses = { how: 'drop', what: changes }
  const dev = goingCli(t, ['dev', folder], { url: proxy.url })
  let version = 0
  for (const how of LOSSES) {
    proxy.loses = { how, what: changes }
    if (version > 0) await save(String(version))
    version++
    await dev.says(/✖ .* It may have been done\.\n {2}looking for it in \d/)
    await dev.says(new RegExp(`✔ hello, version ${version}, in `))
    assert.equal(asks('workflows.update'), version)
  }
  await dev.interrupt()
})

test('windlass dev sends nothing again while it cannot see what became of it', async (t) => {
  const { folder, proxy, asks } = await deploying(t)
  const dev = goingCli(t, ['dev', folder], { url: proxy.url })
  await dev.says(/✔ hello, version 1/)
  await dev.interrupt()
  proxy.loses = { how: '502', what: () => true }
  const again = goingCli(t, ['dev', await folderOf(t, { ...FILES, 'more.ts': '' })], { url: proxy.url })
  await again.says(/✖ .* It may have been done\.\n {2}looking for it/)
  for (let looks = 0; looks < 3; looks++) await again.says(/✖ .*502.*\n {2}looking for it/)
  assert.equal(asks('workflows.update'), 2)
  proxy.loses = undefined
  await again.says(/✔ hello, version 2/)
  assert.equal(asks('workflows.update'), 2)
  await again.interrupt()
})

test('windlass dev sends again what was not done, after it has looked', async (t) => {
  const { folder, proxy, answers, asks } = await deploying(t)
  const update = answers['workflows.update']!
  answers['workflows.update'] = (_args, response) => void response.destroy()
  const dev = goingCli(t, ['dev', folder], { url: proxy.url })
  await untilPolled('the files to be sent', () => asks('workflows.update') > 0)
  answers['workflows.update'] = update
  await dev.says(/looking for it in [^]*✔ hello, version 1/)
  assert.equal(asks('workflows.update'), 2)
  // One at the start, and three before it was sent again.
  assert.equal(asks('workflows.get'), 4)
  await dev.interrupt()
})

test('a save that is undone while nobody knows of its deploy is followed by what lies in the folder', async (t) => {
  const { folder, proxy, save, asks, current } = await deploying(t)
  const dev = goingCli(t, ['dev', folder], { url: proxy.url })
  await dev.says(/✔ hello, version 1/)
  await save('1')
  await dev.says(/✔ hello, version 2/)
  proxy.loses = { how: '502', what: () => true }
  await save('2')
  await dev.says(/✖ .* It may have been done\.\n {2}looking for it/)
  await save('1')
  proxy.loses = undefined
  await dev.says(/✔ hello, version \d.*/)
  assert.match(JSON.stringify(current()), /=> 1/)
  assert.equal(asks('workflows.update'), 4)
  await dev.interrupt()
})
