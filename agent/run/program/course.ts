import type { Ending } from '@windlass/shared/model/ending.ts'
import type { CancelMessage } from '@windlass/shared/wire/program.ts'
import type { Stop } from './host-endings.ts'

/** How far a program has come, and what is decided about its end. */
export interface Course {
  /** It has said that it is executed: no other process may take over. */
  readonly hasBegun: boolean
  /** It has said that it started processes. */
  readonly usedChildren: boolean
  /** Why the agent makes an end of it. */
  readonly stop: Stop | undefined
  /** It was told that its time is over, whatever has become of it since then. */
  readonly isOutOfTime: boolean
  /** What the program itself has said of its end, or the agent among what it told. */
  readonly outcome: Ending | undefined
  /** Its process was killed before it had come to an end by itself. */
  readonly isForced: boolean
}

export type StopMessage = Omit<CancelMessage, 't'>

/** What happens to a program, from its own words and from the agent's. */
export type CourseEvent =
  | { t: 'begun' }
  | { t: 'children' }
  | { t: 'ended'; how: Ending }
  /** It cannot do again what is recorded of it. */
  | { t: 'blocked'; how: Ending }
  | { t: 'asked'; message: StopMessage }
  /** It was asked to stop, and its grace is over. */
  | { t: 'outstayed' }
  | { t: 'abandoned'; why: 'lost' | 'evicted'; reason: string }
  /** Its process lives, and nobody waits for it any longer. */
  | { t: 'overdue' }

/**
 * What is to be done about it, in this order. `disarm`: its times are of no interest any more. `settle`: nothing more
 * is waited for from it.
 */
export type CourseAction = 'disarm' | 'kill' | 'settle' | { ask: StopMessage }

type Step = [Course, readonly CourseAction[]]
type Of<T extends CourseEvent['t']> = Extract<CourseEvent, { t: T }>

const NOTHING: readonly CourseAction[] = []
const KILL: readonly CourseAction[] = ['kill']

const HANDLERS: { readonly [T in CourseEvent['t']]: (course: Course, event: Of<T>) => Step } = {
  begun: (course) => [{ ...course, hasBegun: true }, NOTHING],
  children: (course) => [{ ...course, usedChildren: true }, NOTHING],
  ended,
  blocked(course, { how }) {
    const [next, actions] = ended(course, { how })
    return [{ ...next, isForced: true }, [...actions, 'kill']]
  },
  asked(course, { message }) {
    const isCancel = course.stop?.why === 'handover' && message.why !== 'handover'
    if (course.outcome || (course.stop && !isCancel)) return [course, NOTHING]
    const isOutOfTime = message.why === 'timed-out'
    return [{ ...course, stop: { why: message.why }, isOutOfTime }, ['disarm', { ask: message }]]
  },
  // Its process may wait in the kernel for something that comes only when all of its processes are ended.
  outstayed: (course) => [{ ...course, isForced: true }, ['kill', 'settle']],
  abandoned: (course, { why, reason }) => [
    { ...course, stop: { why, reason }, isForced: true },
    ['disarm', 'kill', 'settle'],
  ],
  overdue: (course) => [{ ...course, isForced: course.isForced || !course.outcome }, KILL],
}

/** Its first word about its end counts. */
function ended(course: Course, { how }: { how: Ending }): Step {
  return course.outcome ? [course, NOTHING] : [{ ...course, outcome: how }, ['disarm', 'settle']]
}

/** A program that was taken back has begun at the agent before this one. */
export function newCourse(hasBegun: boolean): Course {
  const nothing = { usedChildren: false, isOutOfTime: false, isForced: false }
  return { ...nothing, hasBegun, stop: undefined, outcome: undefined }
}

export function step(course: Course, event: CourseEvent): Step {
  const handle = HANDLERS[event.t] as (course: Course, event: CourseEvent) => Step
  return handle(course, event)
}

/** It was asked to stop by itself, by a person or for its time. */
export function isAsked({ stop }: Course): boolean {
  return stop?.why === 'cancelled' || stop?.why === 'timed-out'
}

/** It may park, be woken and be given up: at most it is asked to come to an end, and goes on elsewhere otherwise. */
export function mayWait({ stop, outcome }: Course): boolean {
  return !outcome && (!stop || stop.why === 'handover')
}

/** Neither has it come to an end, nor does anybody make one. */
export function goesOn({ stop, outcome }: Course): boolean {
  return !stop && !outcome
}
