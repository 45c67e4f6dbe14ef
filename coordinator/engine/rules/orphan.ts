/**
 * What the sweeper of runs finds. Every unfinished run has exactly one owner: a row of the queue, a place among those that wait
 * for a concurrency slot, a timer, a live process, or, while it waits without a process, something that will wake it.
 */
export const ORPHAN_KINDS = [
  /** Queued, and neither in the queue nor waiting to enter it. */
  'queued_nowhere',
  /** Queued, and in the queue as well as waiting to enter it: it would be executed twice. */
  'queued_twice',
  /** Executed or parked, and there is no placement of its epoch. */
  'process_missing',
  /** Waits without a process, what it waits for is there, and it is not in the queue. */
  'wake_missing',
  /** A sleep, or a question with a time limit, that nothing will ever end. */
  'timer_missing',
  /** The program waits for an answer to a question that is not open. */
  'question_missing',
  /** The program waits for a child that has ended. */
  'child_ended',
  /** The program waits for a child that does not exist. */
  'child_missing',
  /** Waits for room in its concurrency group, and there is room. */
  'waiter_with_room',
  /** Not a run: a concurrency group of which another number of slots is noted than are taken. */
  'group_miscounted',
  /** Rows of runs that have ended, that are in another state, or that do not exist. */
  'stray_queue_row',
  'stray_placement',
  'stray_timer',
  'stray_question',
  'stray_slot',
  'stray_waiter',
] as const
export type OrphanKind = (typeof ORPHAN_KINDS)[number]

/**
 * Waits without a process, and nothing that could ever wake it is open. That it waits was said by its program or its
 * agent, which may say anything: no orphan of ours.
 */
export type FindingKind = OrphanKind | 'waits_for_nothing'
