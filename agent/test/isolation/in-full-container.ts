import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { NO_LIMITS } from '../../isolation/plan.ts'
import { pidsOfUids } from '../../isolation/uids.ts'
import { aStage } from '../run/programs.ts'
import { ofUsers } from './requirements.ts'

// A process of its own, in a cgroup that has a limit of processes, as a container may have: process-limit.test.ts.
const [folder = '', wanted = ''] = process.argv.slice(2)
const endings: (() => unknown)[] = []
const processes = wanted === '' ? null : Number(wanted)
const isolation = { ...ofUsers({ cgroup: 'off', limits: { ...NO_LIMITS, processes } }), areUsersAutomatic: true }
const count = () => Number(readFileSync(`${folder}/pids.current`, 'utf8'))
const most = Number(readFileSync(`${folder}/pids.max`, 'utf8'))
try {
  const t = { after: (ending: () => unknown) => void endings.push(ending) } as TestContext
  const stage = await aStage(t, { isolation })
  const others = await stage.start('says-trigger.mjs')
  const bomb = stage.processes.run(await stage.start('forks-on.mjs'), () => {})
  // Where it may have all of them, there is none for others.
  const isFull = () => count() > (processes === null ? most / 2 - 20 : most - 2)
  let looks = 0
  await untilPolled('there are many, and they stay', () => (looks = isFull() ? looks + 1 : 0) > 20)
  const { how } = await stage.processes.run(others, () => {}).done
  bomb.kill('fenced')
  await bomb.done
  // On a busy machine it may take more than one try.
  await untilPolled('nothing survives', () => stage.processes.stats().survivors === 0)
  const left = pidsOfUids(isolation.uids).length
  process.stdout.write(JSON.stringify({ meanwhile: how, left }))
} finally {
  for (const end of endings.toReversed()) await end()
}
