import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { log, requestInput, sleep, step } from 'windlass'
import type { Play } from './index.ts'

/** Whether it is the first time that anybody asks. */
function isFirst(mark: string | undefined): boolean {
  if (existsSync(mark!)) return false
  writeFileSync(mark!, '')
  return true
}

export const LOSSES: Record<string, Play> = {
  async dies(_, { attempt }) {
    const kept = await step('kept', () => `of attempt ${attempt}`)
    log(`attempt ${attempt}`)
    await sleep(50)
    if (attempt === 1) process.kill(process.pid, 'SIGKILL')
    return { kept, attempt }
  },

  async diesAlways(_, { attempt }) {
    log(`attempt ${attempt}`)
    await sleep(50)
    process.kill(process.pid, 'SIGKILL')
    await wait(60_000)
  },

  async isKilledParked() {
    log(`pid ${process.pid}`)
    const answer = await requestInput({ prompt: 'Killed?' })
    log('goes on in another process')
    return answer
  },

  async losesItsAgent(_, { attempt }) {
    // With a child process in it, its next agent does not take it back.
    process.getBuiltinModule('node:child_process').execFileSync('true')
    log(`attempt ${attempt}`)
    if (attempt === 1) await wait(600_000)
    return attempt
  },

  async outlivesTheCoordinator() {
    log('before')
    const answer = await requestInput({ prompt: 'Still there?' })
    log('after')
    return answer
  },

  async losesTheCoordinator({ mark }) {
    log('before')
    while (!existsSync(mark!)) await wait(20)
    log('after')
  },

  /** Does something other than its journal says. */
  async changesItsMind({ mark }, { attempt }) {
    await step(isFirst(mark) ? 'one way' : 'another way', () => 1)
    if (attempt > 1) return 'from the top'
    return requestInput({ prompt: 'Changed?' })
  },
}
