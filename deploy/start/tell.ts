import { createLog } from '@windlass/shared/log.ts'

/** How the instance speaks: sentences for a person, or JSON lines on stderr and one line of facts on stdout. */
export interface Teller {
  json: boolean
  say(sentence: string): void
  fail(sentence: string): void
  /** The one line that a script waits for. */
  answer(facts: { url: string; org: string; apiKey: string }): void
}

const MORE = 'Keys, sessions and orgs are made on this machine: npx windlass admin --help'

export function createTeller(json: boolean): Teller {
  const log = createLog({ process: 'start' })
  return {
    json,
    say: (sentence) => (json ? log('start', { sentence }) : void process.stdout.write(`${sentence}\n`)),
    fail: (sentence) => (json ? log.error('start.failed', { sentence }) : void process.stderr.write(`${sentence}\n`)),
    answer({ url, org, apiKey }) {
      // The session stays in its file: it may do more than whoever reads our output should.
      if (json) process.stdout.write(`${JSON.stringify({ url, org, apiKey })}\n`)
      else process.stdout.write(`\n  address  ${url}\n  org      ${org}\n  API key  ${apiKey}\n\n${MORE}\n`)
    },
  }
}
