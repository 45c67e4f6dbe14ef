import { log } from 'windlass'
import type { RunContext } from 'windlass'

export interface Input {
  /** The first attempt that succeeds; earlier ones fail. */
  succeedsOnAttempt: number
  /** `throw` an error, `exit` with code 3, or `die` by a signal, as from the out-of-memory killer. */
  how: 'throw' | 'exit' | 'die'
}

export async function run(input: Input, context: RunContext): Promise<{ attempt: number }> {
  log(`attempt ${context.attempt}`)
  if (context.attempt < input.succeedsOnAttempt) fail(input.how, context.attempt)
  return { attempt: context.attempt }
}

function fail(how: Input['how'], attempt: number): never {
  if (how === 'exit') process.exit(3)
  if (how === 'die') process.kill(process.pid, 'SIGKILL')
  throw new Error(`attempt ${attempt} was told to fail`)
}
