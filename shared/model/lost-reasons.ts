import type { Loss } from './run.ts'

/** Why an agent itself gives up what it executes, in the words of its report. */
export const LOST_REASONS = {
  stale: 'another process has the run',
  fenced: 'the agent lost its connection for longer than its lease allows',
  revoked: 'the runner was revoked',
  shutdown: 'the agent was stopped',
  killed: 'the agent was killed',
  setBack: 'the machine of the agent was set back, or has lost what the agent had written down',
  incomplete: 'a part of what the agent had written down is missing: on its disk, or in the database',
  unconfirmed: 'the coordinator did not confirm in time that the run is ours',
} as const

const WHAT: ReadonlyMap<string, Loss['what']> = new Map([
  [LOST_REASONS.fenced, 'network'],
  [LOST_REASONS.unconfirmed, 'network'],
  [LOST_REASONS.revoked, 'operator'],
  [LOST_REASONS.shutdown, 'operator'],
  [LOST_REASONS.killed, 'daemon'],
  [LOST_REASONS.setBack, 'host'],
  [LOST_REASONS.incomplete, 'host'],
])

/** How an agent begins that found the program of a killed one and could not go on with it; the cause follows. */
export const NOT_TAKEN_BACK = `${LOST_REASONS.killed}, and the next one could not take it back: `
/** The same in the words of an earlier version. */
const NOT_TAKEN_BACK_BEFORE = 'its agent was killed, and '

/** What stands behind a reason, where the run had waited for something. */
const MEANWHILE = '; '

/** The reason, with what the run had waited for until then. */
export function lostWhile(why: keyof typeof LOST_REASONS, waiting: string | undefined): string {
  return waiting === undefined ? LOST_REASONS[why] : `${LOST_REASONS[why]}${MEANWHILE}${waiting}`
}

/** What was lost where an agent says why it lost a run. All else that it can say is about that one process. */
export function whatIsLost(reason: string): Loss['what'] {
  if (reason.startsWith(NOT_TAKEN_BACK) || reason.startsWith(NOT_TAKEN_BACK_BEFORE)) return 'daemon'
  return WHAT.get(reason) ?? WHAT.get(reason.split(MEANWHILE, 1)[0]!) ?? 'program'
}
