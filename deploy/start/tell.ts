import { createLog } from '@windlass/shared/log.ts'

/** How the instance speaks: sentences for a person, or JSON lines on stderr and one line of facts on stdout. */
export interface Teller {
  json: boolean
  say(sentence: string): void
  fail(sentence: string): void
  /** The one line that a script waits for. */
  answer(facts: { url: string; org: string; apiKey: string }): void
}

export function createTeller(json: boolean): Teller {
  const log = createLog({ process: 'start' })
  return {
    json,
    say: (sentence) => (json ? log('start', { sentence }) : void process.stdout.write(`${sentence}\n`)),
    fail: (sentence) => (json ? log.error('start.failed', { sentence }) : void process.stderr.write(`${sentence}\n`)),
    answer(facts) {
      if (json) process.stdout.write(`${JSON.stringify(facts)}\n`)
      else process.stdout.write(`\n  address  ${facts.url}\n  org      ${facts.org}\n  API key  ${facts.apiKey}\n\n`)
    },
  }
}
