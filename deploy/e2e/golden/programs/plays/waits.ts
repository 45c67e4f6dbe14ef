import { log, phase, requestInput, sleep, step, workflows } from 'windlass'
import type { Play } from './index.ts'

const APPROVED = {
  type: 'object',
  properties: { approved: { type: 'boolean' } },
  required: ['approved'],
  additionalProperties: false,
} as const

const name = (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error))

/** A child that ends when the test answers it, which is once its parent waits. */
const child = (play: string, text?: string) => workflows.call<unknown>('plays', { play, text })

export const WAITS: Record<string, Play> = {
  returns: () => ({ text: 'done', numbers: [1, 2.5, -3e7], nothing: null, deep: { a: [{ b: true }] } }),
  nothing: () => undefined,

  async sleeps() {
    log('before')
    await sleep('5s')
    log('after')
    return 'slept'
  },

  async naps() {
    await sleep(10)
    return 'a short sleep is no suspension'
  },

  async asks() {
    const { approved } = await requestInput({ prompt: 'Ship 1.4.2?', schema: APPROVED, timeout: '2d' })
    log(`approved: ${approved}`)
    return { approved }
  },

  asksTwice: async () => [await requestInput({ prompt: 'First?' }), await requestInput({ prompt: 'Second?' })],
  asksInVain: () => requestInput({ prompt: 'Anybody?', timeout: '5s', onTimeout: { answer: 'nobody' } }),
  asksInVainAndFails: () => requestInput({ prompt: 'Anybody?', timeout: '5s' }),
  asksAndCatches: () => requestInput({ prompt: 'Anybody?', timeout: '5s' }).catch(name),

  calls: async () => ({ answer: await child('answered', 'Child?') }),
  answered: async ({ text }) => {
    log('the child asks')
    return requestInput({ prompt: text! })
  },
  callsAFailure: async () => child('fails', 'no').catch(name),
  callsAFailureAndFails: async () => child('fails', 'no'),
  fails: async ({ text }) => {
    await requestInput({ prompt: 'Fail?' })
    throw Object.assign(new Error(text), { code: 'CHILD_SAYS_NO' })
  },
  callsNobody: () => workflows.call('no-such-workflow', {}).catch(name),

  async steps() {
    phase('first', { of: 2 })
    const date = await step('date', () => new Date(0))
    const map = await step('map', () => new Map([['a', 1n]]))
    phase('second')
    const thrown = await step('throws', () => {
      throw new RangeError('not this one')
    }).catch(name)
    return { date: date.toISOString(), map: [...map].map(String), thrown }
  },

  /** The steps are begun in this order and end in the other. */
  async parallelSteps() {
    const gate = Promise.withResolvers<void>()
    const first = step('first', async () => {
      await gate.promise
      return 1
    })
    const second = await step('second', () => 2)
    gate.resolve()
    return [await first, second]
  },

  async parallelWaits() {
    const [answer, label] = await Promise.all([requestInput({ prompt: 'Beside?' }), sleep('5s').then(() => 'slept')])
    return { answer, label }
  },

  async races() {
    const asked = requestInput({ prompt: 'Faster?' })
    return Promise.race([asked, sleep('1d').then(() => 'a day')])
  },

  /** Everything that was done before is replayed in another process. */
  async replays() {
    log('before')
    phase('asking')
    const made = await step('made once', () => 'kept')
    const answer = await requestInput({ prompt: 'Go on?' })
    log(`after ${made}`)
    await sleep('1s')
    return { made, answer }
  },
}
