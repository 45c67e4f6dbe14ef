import { createLog } from '@windlass/shared/log.ts'
import { dropping, type Gap, standardOut } from '@windlass/shared/log-out.ts'

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
  const [out, errors] = [dropping(standardOut(1), gapText), dropping(standardOut(2), gapText)]
  return {
    json,
    say: (sentence) => (json ? log('start', { sentence }) : out(`${sentence}\n`)),
    fail: (sentence) => (json ? log.error('start.failed', { sentence }) : errors(`${sentence}\n`)),
    answer({ url, org, apiKey }) {
      // The session stays in its file: it may do more than whoever reads our output should.
      if (json) out(`${JSON.stringify({ url, org, apiKey })}\n`)
      else out(`\n  address  ${url}\n  org      ${org}\n  API key  ${apiKey}\n\n${MORE}\n`)
    },
  }
}

function gapText({ lines, since, reason }: Gap): string {
  return `${lines} of these messages could not be written since ${new Date(since).toISOString()} (${reason}).\n`
}
