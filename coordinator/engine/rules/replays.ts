import type { Loss } from '@windlass/shared/model/run.ts'
import type { Moving } from './run.ts'
import { fail, release } from './transitions.ts'

type Why = { what: Loss['what']; reason: string }

const MOST_REPLAYS = 5
const FIRST_REPLAY_MS = 1000
/**
 * An agent that dies says nothing about the program, however often that happens in a night. But a program may take its
 * machine with it each time it is led back, so that there is an end: with these delays after eight hours at the least.
 */
const MOST_CUT_REPLAYS = 500
const CUT_REPLAY_MS = 1000
const LONGEST_CUT_REPLAY_MS = 60_000
const LONGEST_PUT_OFF_MS = 15 * 60_000

export const mayReplayAgain = ({ replays }: Pick<Moving, 'replays'>) => replays < MOST_REPLAYS

/** Leading a program back executes nothing new, so it is no attempt of the run; but it does not go on for ever. */
export function loseReplay(run: Moving, at: number, why: Why): void {
  const replays = ++run.replays
  if (replays <= MOST_REPLAYS) return replayAfter(run, FIRST_REPLAY_MS * 2 ** (replays - 1))
  giveReplaysUp(run, at, { replays, how: '', why })
}

/**
 * The agent of a replay died, or its machine did, or it was out of reach: the program has nothing to do with it, as far
 * as one can tell.
 */
export function cutReplay(run: Moving, at: number, why: Why): void {
  const replays = ++run.cutReplays
  if (replays <= MOST_CUT_REPLAYS) return replayAfter(run, Math.min(LONGEST_CUT_REPLAY_MS, CUT_REPLAY_MS * replays))
  giveReplaysUp(run, at, { replays, how: ', with its agent or the machine of it,', why })
}

function replayAfter(run: Moving, delayMs: number): void {
  release(run)
  run.replayAfterMs = delayMs
}

/**
 * An agent could not begin it, as without its secrets or on a full disk. Somebody may mend that, after a weekend too:
 * the waits grow to a quarter of an hour, and with them the last try comes after five days.
 */
export function putReplayOff(run: Moving, at: number, reason: string, delayMs: number): void {
  const replays = ++run.cutReplays
  if (replays <= MOST_CUT_REPLAYS) return replayAfter(run, Math.min(LONGEST_PUT_OFF_MS, delayMs * replays))
  giveReplaysUp(run, at, { replays, how: ' or could not be begun', why: { what: 'program', reason } })
}

function giveReplaysUp(
  run: Moving,
  at: number,
  { replays, how, why }: { replays: number; how: string; why: Why },
): void {
  fail(run, at, {
    code: 'RUN_CRASHED',
    message: [
      `The run could not be continued: its process was lost ${replays} times${how} before it was where it had stood;`,
      `the last time ${why.reason}.`,
    ].join(' '),
    detail: { replays, ...why },
  })
}
