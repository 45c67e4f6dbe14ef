import { once } from 'node:events'
import { CHANNELS, type RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Client } from 'windlass/client'
import { until } from '../_kit/until.ts'
import { filled, layout } from './layout.ts'
import type { Names } from './stable.ts'

/** However busy the machine is. */
const PATIENCE_MS = 120_000

/** A run that is watched from its beginning, and what a test may do to it meanwhile. */
export class Stage {
  readonly client: Client
  readonly run: string
  readonly #events: RunEvent[] = []
  readonly #heard = new EventTarget()
  readonly #isOver: Promise<void>
  #hasEnded = false

  constructor(client: Client, run: string) {
    this.client = client
    this.run = run
    this.#isOver = this.#listen()
    // Told by whoever waits for it.
    this.#isOver.catch(() => undefined)
  }

  async #listen(): Promise<void> {
    const options = { channels: [...CHANNELS], patienceMs: PATIENCE_MS }
    for await (const event of this.client.follow(this.run, options)) {
      this.#events.push(event)
      this.#heard.dispatchEvent(new Event('event'))
    }
    this.#hasEnded = true
  }

  /** Resolves with the event of this type, the `nth` of those that hold the text. */
  async sees(type: string, text = '', nth = 1): Promise<RunEvent> {
    const isIt = (event: RunEvent) => event.type === type && JSON.stringify(event.data).includes(text)
    for (;;) {
      const found = this.#events.filter(isIt)[nth - 1]
      if (found) return found
      if (this.#hasEnded) throw new Error(`It ended without ${type} ${text}`)
      await this.#inTime(`${type} ${text}`, Promise.race([once(this.#heard, 'event'), this.#isOver]))
    }
  }

  async #inTime(what: string, promise: Promise<unknown>): Promise<void> {
    const late = Promise.withResolvers<never>()
    const said = () => this.#events.map(({ type }) => type).join(', ')
    const fail = () => late.reject(new Error(`${what}: not within ${PATIENCE_MS} ms. It said: ${said()}`))
    const timer = setTimeout(fail, PATIENCE_MS)
    try {
      await Promise.race([promise, late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Answers a question of the run itself, once the run waits for it. */
  async answer(prompt: string, answer: unknown): Promise<void> {
    await this.client.inputs.respond({ input: (await this.question(prompt)).id, answer })
  }

  async question(prompt: string) {
    const look = async () => {
      const { inputs } = await this.client.inputs.list({ run: this.run, limit: 100 })
      return inputs.find((input) => input.prompt === prompt)
    }
    return until(`${prompt} of ${this.run}`, look, { ms: PATIENCE_MS })
  }

  /** Stage of the newest child, watched as well. */
  async child(): Promise<Stage> {
    const look = async () => (await this.client.runs.children({ run: this.run })).runs.at(-1)
    const { id } = await until(`a child of ${this.run}`, look, { ms: PATIENCE_MS })
    return new Stage(this.client, id)
  }

  /** Nothing is left of it but what is kept. */
  async hasNoProcess(): Promise<void> {
    const look = async () => (await this.client.runs.why({ run: this.run })).why.process === null
    await until(`${this.run} to have no process`, look, { ms: PATIENCE_MS })
  }

  async over(): Promise<Run> {
    await this.#inTime('its end', this.#isOver)
    return (await this.client.runs.get({ run: this.run })).run
  }

  /**
   * All that is to be known about it when it is over: the run, its output and its events, then the same of its
   * children.
   */
  async story(names: Names): Promise<string> {
    const run = await this.over()
    const { output } = await this.client.runs.output({ run: this.run })
    const { input } = await this.client.runs.input({ run: this.run })
    const { runs: children } = await this.client.runs.children({ run: this.run, limit: 100 })
    const stories: string[] = []
    for (const { id } of children.toReversed()) stories.push(await new Stage(this.client, id).story(names))
    return [
      filled(names.value({ ...run, lost: lossOf(run) }) as object),
      `input ${layout(names.value(input))}`,
      `output ${layout(names.value(shortened(output)))}`,
      ...this.#events.map((event) => eventLine(event, names)),
      ...stories.map((story) => `child\n${story.replace(/^/gm, '  ')}`),
    ].join('\n')
  }
}

/** When something was last taken from an agent that is gone depends on the moment of its death. */
function lossOf({ lost }: Run) {
  return lost && { ...lost, lastAckAt: '<time, or never>', lastRenewalAt: '<time, or never>' }
}

/** A long text is known by its beginning and its length. */
function shortened(value: unknown): unknown {
  if (typeof value !== 'string' || value.length < 1000) return value
  return `${value.slice(0, 20)}… (${value.length})`
}

function eventLine({ cursor, channel, type, data }: RunEvent, names: Names): string {
  // How often a run was offered to a runner: once more where one had no room just then.
  const stable = 'epoch' in data ? { ...data, epoch: '<epoch>' } : data
  return `${cursor} ${channel} ${type} ${layout(names.value(stable))}`
}
