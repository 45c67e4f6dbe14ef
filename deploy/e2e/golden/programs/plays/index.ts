import type { RunContext } from 'windlass'
import { ENDS } from './ends.ts'
import { LOSSES } from './losses.ts'
import { WAITS } from './waits.ts'

export interface Input {
  /** Which of the plays. */
  play: string
  /** A file of the test, for plays that do something else the second time. */
  mark?: string
  text?: string
}

export type Play = (input: Input, context: RunContext) => unknown

const PLAYS: Record<string, Play> = { ...WAITS, ...ENDS, ...LOSSES }

/** Does what the test asks for. */
export async function run(input: Input, context: RunContext): Promise<unknown> {
  return PLAYS[input.play]!(input, context)
}
