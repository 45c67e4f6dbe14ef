import { log, phase, sleep, step } from 'windlass'
import type { RunContext } from 'windlass'

export interface Input {
  /** Who is greeted. */
  names: string[]
}

/** Input and output are checked against these types, and `windlass workflows get` shows them. */
export async function run(input: Input, context: RunContext): Promise<{ greetings: string[] }> {
  phase('greet', { people: input.names.length })
  const greetings: string[] = []
  for (const name of input.names) {
    // What a step returns is kept: a run that goes on after a crash or a wait does not do it again.
    greetings.push(await step(`greet ${name}`, () => `Hello, ${name}! It is ${new Date().toLocaleTimeString('en')}.`))
    log(`greeted ${name}`, { attempt: context.attempt })
  }
  // For seconds or for weeks: while it sleeps a run holds nothing but its record.
  await sleep('1s')
  return { greetings }
}
