import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { AgentRefusal } from '../exit-codes.ts'
import { openLogFile } from '../log-file.ts'
import { configOf } from '../run-agent.ts'
import { readSettingsFile, usualFiles } from '../settings-file.ts'
import { logSource } from '../support/log-source.ts'
import { folderTest } from './_kit/folder-test.ts'

folderTest('the file that is named is read, and its settings count', async (folder) => {
  const file = path.join(folder, 'agent.env')
  await writeFile(
    file,
    `# of this machine\nWINDLASS_URL=http://there:1\n\nexport WINDLASS_AGENT_NAME="a name" # with a space\nHTTPS_PROXY=x\n`,
  )
  const config = configOf({ config: file }, {})
  assert.deepEqual([config.url, config.name], ['http://there:1', 'a name'])
  assert.equal(configOf({}, { WINDLASS_AGENT_CONFIG: file, WINDLASS_URL: 'http://here' }).url, 'http://here')
})

folderTest('of the usual places the first one counts, and `none` is none', async (folder) => {
  const files = [path.join(folder, 'absent.env'), path.join(folder, 'second.env')]
  assert.deepEqual(readSettingsFile(undefined, files), { file: undefined, values: {} })
  await writeFile(files[1]!, 'WINDLASS_AGENT_SLOTS=3\n')
  assert.deepEqual(readSettingsFile(undefined, files), { file: files[1], values: { WINDLASS_AGENT_SLOTS: '3' } })
  assert.deepEqual(readSettingsFile('none', files), { file: undefined, values: {} })
  assert.deepEqual(usualFiles('/home/me'), [
    '/etc/windlass-agent/agent.env',
    '/home/me/.config/windlass-agent/agent.env',
  ])
})

test('where the user has no home there are fewer usual places, and no failure', (t) => {
  t.mock.method(os, 'homedir', () => {
    throw new Error('A system error occurred: uv_os_homedir returned ENOENT (no such file or directory)')
  })
  assert.deepEqual(usualFiles(), ['/etc/windlass-agent/agent.env'])
  assert.notEqual(logSource(undefined).kind, 'file')
})

folderTest('what is wrong in it is refused with its place', async (folder) => {
  const file = path.join(folder, 'agent.env')
  const refusal = (text: RegExp) => (error: unknown) =>
    error instanceof AgentRefusal && error.exitCode === 78 && text.test(error.message)
  assert.throws(
    () => configOf({ config: file }, {}),
    refusal(/WINDLASS_AGENT_CONFIG names a file that cannot be read.*ENOENT/),
  )
  await writeFile(file, 'WINDLASS_URL=http://there:1\nWINDLASS_AGENT_SLOTS 3\n')
  assert.throws(() => configOf({ config: file }, {}), refusal(/agent\.env, line 2: write NAME=value/))
  await writeFile(file, 'WINDLASS_URL=http://there:1\nWINDLASS_AGENT_SLOT=3\n')
  assert.throws(
    () => configOf({ config: file }, {}),
    refusal(/WINDLASS_AGENT_SLOT is no setting.*WINDLASS_AGENT_SLOTS/),
  )
  await mkdir(path.join(folder, 'folder'))
  assert.throws(() => configOf({ config: path.join(folder, 'folder') }, {}), refusal(/EISDIR/))
})

folderTest('a log file is kept in three pieces', async (folder) => {
  const file = path.join(folder, 'logs', 'agent.log')
  const log = openLogFile(file, 100)
  for (let n = 1; n <= 20; n++) log.write(`${String(n).padStart(49)}\n`)
  const names = (await readdir(path.dirname(file))).sort()
  assert.deepEqual(names, ['agent.log', 'agent.log.1', 'agent.log.2'])
  const all = await Promise.all(names.toReversed().map((name) => readFile(path.join(folder, 'logs', name), 'utf8')))
  assert.deepEqual(all.join('').trim().split(/\s+/), ['15', '16', '17', '18', '19', '20'])
  const again = openLogFile(file, 100)
  again.write(`${'21'.padStart(49)}\n`)
  assert.match(await readFile(file, 'utf8'), /^\s+21\n$/)
})
