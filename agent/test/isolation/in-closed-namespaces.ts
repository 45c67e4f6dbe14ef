import assert from 'node:assert/strict'
import { readdirSync, readlinkSync, statSync } from 'node:fs'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { pidsOfUids } from '../../isolation/uids.ts'
import { allPids, uidsOf } from '../../os/process-table.ts'
import { aStage, texts } from '../run/programs.ts'
import { ofUsers } from './requirements.ts'

// A process of its own, for which bubblewrap is another than for the rest of the machine: closed-namespaces.test.ts.
const endings: (() => unknown)[] = []
const isolation = { ...ofUsers({ level: 'bubblewrap', cgroup: 'off' }), areUsersAutomatic: true }
try {
  const t = { after: (ending: () => unknown) => void endings.push(ending) } as TestContext
  const stage = await aStage(t, { isolation })
  const inForce = await stage.processes.isolation()
  const effective = 'refusal' in inForce ? inForce : inForce.effective
  const said = Promise.withResolvers<string>()
  const start = await stage.start('leaves-setuid.mjs')
  const program = stage.processes.run(start, (events) => said.resolve(texts(events)[0] ?? ''))
  void program.done.then((ending) => said.reject(new Error(JSON.stringify(ending))))
  const seen = JSON.parse(await said.promise) as { cwd: string }
  const { uid, mode } = statSync(path.join(seen.cwd, 'setuid'))
  const users = [...new Set(allPids().filter(isIn(seen.cwd)).flatMap(uidsOf))]
  program.kill('fenced')
  await program.done
  await untilPolled('its folder is gone', () => readdirSync(path.join(stage.home, 'workspaces')).length === 0)
  const left = pidsOfUids(isolation.uids).length
  const isOfRuns = (each: number) => each > isolation.uids.first && each <= isolation.uids.last
  assert.ok(isOfRuns(uid) && users.every(isOfRuns), `${uid}: ${users.join(' ')}`)
  const isSetuid = (mode & 0o4000) !== 0
  process.stdout.write(JSON.stringify({ effective, seen, isSetuid, users: users.length, left }))
} finally {
  for (const end of endings.toReversed()) await end()
}

function isIn(folder: string): (pid: number) => boolean {
  return (pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === folder
    } catch {
      return false
    }
  }
}
