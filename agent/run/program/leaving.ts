import type { IdleReport } from '@windlass/shared/wire/program.ts'
import { sweep } from '../../os/end-processes.ts'
import type { Exit } from '../../os/process.ts'
import { isAsked, type Course } from './course.ts'
import type { Phase } from './phase.ts'
import type { ProgramOutput } from './output.ts'
import type { ProgramStart, Workplace } from './program.ts'
import { within } from './within.ts'

const EXIT_MS = 2_000
const IDLE_MS = 2_000
const BLOCKED_MS = 60_000
/** What is said of a process that was killed and that the kernel keeps: it executes nothing more. */
const KILLED: Exit = { exitCode: null, signal: 'SIGKILL' }
const EXITED: IdleReport = { leftovers: ['its exit'], strays: [] }

/** A program that leaves its process. It may still speak meanwhile, so that its course is asked for each time. */
export interface Leaving {
  process: ProgramStart['process']
  output: Pick<ProgramOutput, 'flush' | 'taken' | 'drained'>
  /** What the program has left behind, by its own word. */
  idle: Promise<IdleReport>
  /** Former runs of the process have called in it; nothing came of that. */
  onStrays: (strays: string[]) => void
  course: () => Course
  /** Whether a replay will print again what is left of a line. */
  isRepeated: () => boolean
  /** Nobody waits for the process any longer. */
  endProcess: () => void
}

/** Whether a replay will print again what is left of a line. */
export function isRepeated(course: Course, { isReplaying, isParked }: Phase): boolean {
  const { outcome } = course
  if (outcome && outcome.how !== 'blocked') return false
  return isReplaying || outcome !== undefined || (isParked && !isAsked(course))
}

/** Whether the process is as clean as it was, so that another run can follow. All of its output has been taken then. */
export async function isLeftClean(own: Workplace, { idle, onStrays, output, course }: Leaving): Promise<boolean> {
  const report = await within(IDLE_MS, Promise.race([idle, own.exit.then(() => EXITED)]))
  if (report === undefined) return false
  if (report.strays.length > 0) onStrays(report.strays)
  if (report.leftovers.length > 0 || report.strays.length > 0) return false
  const { marker, workspace, enclosure, pid = 0 } = own
  if (await enclosure.hasCompany(pid, { marker, workspace, isLikely: course().usedChildren })) return false
  // What went past the frames lies in its pipes already: the next turn of the loop reads it.
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  output.flush()
  await output.taken()
  own.listen(null)
  return !course().stop && !own.hasExited()
}

/**
 * Waits for the process, ends what is left of it, and reads all it had to say. A process that is killed may wait in the
 * kernel for a file system of its own, until that is ended with all else: so its exit is not waited for first.
 */
export async function putToEnd(
  own: Workplace,
  exit: Promise<Exit>,
  { process, output, course, isRepeated, endProcess }: Leaving,
): Promise<{ exit: Exit; isClean: boolean }> {
  const isWanted = () => course().stop?.why !== 'lost'
  if (course().outcome && process === 'fresh') await within(EXIT_MS, exit)
  if (!own.hasExited()) endProcess()
  let isClean = await own.enclosure.end(own.pid)
  const how = isClean || own.hasExited() ? await exit : KILLED
  await output.drained(own.framesRead, isWanted)
  // A program that said how it ended also said whether it started others. Of any other we know nothing.
  const isOpen = own.pid !== undefined && !own.enclosure.isSealed
  if (isOpen && isDoubtful(course())) isClean = (await sweep(own)) && isClean
  await output.drained(own.allRead, isWanted)
  own.listen(null)
  own.release()
  if (!isRepeated()) output.flush()
  await within(BLOCKED_MS, output.taken())
  return { exit: how, isClean }
}

function isDoubtful({ usedChildren, outcome, isForced }: Course): boolean {
  return usedChildren || !outcome || isForced
}
