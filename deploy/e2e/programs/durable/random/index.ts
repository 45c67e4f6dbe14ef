import { requestInput, sleep, step, workflows } from 'windlass'
import type { RunContext } from 'windlass'

/** Is another program each time it is started, until it is started again from the top. */
export async function run(
  input: { waits?: string } | null,
  context: RunContext,
): Promise<{ attempt: number; answer: unknown }> {
  const lot = context.attempt === 1 ? Math.random() : 1
  await step(`draw ${lot}`, () => lot)
  return { attempt: context.attempt, answer: await wait(input?.waits, context.attempt) }
}

function wait(how: string | undefined, attempt: number): Promise<unknown> {
  // From the top it waits until somebody cancels it.
  const ms = attempt === 1 ? 1000 : 3_600_000
  if (how === 'sleeping') return sleep(ms)
  if (how === 'waiting_for_child') return workflows.call('parked', { program: { op: 'sleep', ms } })
  return requestInput<unknown>({ prompt: 'Go on?' })
}
