import { requestInput, step } from 'windlass'
import type { RunContext } from 'windlass'

/** Is another program each time it is started, until it is started again from the top. */
export async function run(_input: unknown, context: RunContext): Promise<{ attempt: number; answer: unknown }> {
  const lot = context.attempt === 1 ? Math.random() : 1
  await step(`draw ${lot}`, () => lot)
  const answer = await requestInput<unknown>({ prompt: 'Go on?' })
  return { attempt: context.attempt, answer }
}
