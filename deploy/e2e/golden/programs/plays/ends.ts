import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { log, phase, requestInput, sleep } from 'windlass'
import type { Play } from './index.ts'

let served = 0

export const ENDS: Record<string, Play> = {
  throws() {
    throw new TypeError('cannot go on')
  },

  throwsACode() {
    throw Object.assign(new Error('the card was declined'), { code: 'CARD_DECLINED', detail: { card: 1 } })
  },

  throwsAText() {
    // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error -- programs do
    throw 'just a text'
  },

  retried(_, { attempt }) {
    log(`try ${attempt}`)
    if (attempt < 3) throw new Error(`not in attempt ${attempt}`)
    return attempt
  },

  async exits() {
    log('leaves')
    await wait(1)
    process.exit(3)
  },

  async rejects() {
    void Promise.reject(new Error('nobody waits for this'))
    await wait(60_000)
  },

  neverSettles: () => new Promise(() => {}),
  tooLarge: () => 'x'.repeat(2 * 1024 * 1024),
  noJson: () => ({ big: 1n }),

  async spins() {
    log('spins')
    await wait(60_000)
  },

  /** Deaf to everything: only killing ends it. */
  async deaf() {
    log('deaf')
    for (;;) await wait(1000)
  },

  async listens(_, { signal }) {
    log('begun')
    try {
      await wait(60_000, undefined, { signal })
    } finally {
      log('tidied up')
    }
  },

  async asksAndTidies() {
    try {
      await requestInput({ prompt: 'Cancelled?' })
    } catch (error) {
      log((error as Error).name)
      throw error
    }
  },

  async talks() {
    log('a line')
    log.info('with fields', { n: 1, deep: { a: [true] } })
    log.warn('a warning', { why: 'because' })
    log.error('an error')
    await sleep(50)
    phase('middle', { percent: 50 })
    await sleep(50)
    console.log('printed %d', 1)
    process.stdout.write('begun, ')
    process.stdout.write('ended\ntwo\n')
    process.stdout.write('no newline at the end')
  },

  async complains() {
    console.error('to stderr')
    process.stderr.write('{"looks":"like JSON"}\n')
    return wait(50)
  },

  async tellsSecrets() {
    const secret = String(process.env['GOLDEN_SECRET'])
    log(`it is ${secret}`, { inside: { secret } })
    phase(`phase of ${secret}`, { base64: Buffer.from(secret).toString('base64') })
    await sleep(50)
    console.log(`printed ${encodeURIComponent(secret)}`)
    return { secret, variable: process.env['GOLDEN_VARIABLE'] }
  },

  knows: (_, { attempt, org, workflow, environment }) => ({ attempt, org, workflow, environment }),

  /** Whether its process has served before. */
  counts: () => ++served,

  async takesItsTime({ mark }) {
    log('has the only place')
    while (!existsSync(mark!)) await wait(20)
  },
}
