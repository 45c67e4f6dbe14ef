import { channel } from 'node:diagnostics_channel'

/**
 * Named moments of the product that a test can wait for, with their facts. A room adds its own here, so that one search
 * finds all of them. Facts are at hand where the moment is. Without a listener it costs one object and one comparison.
 */
export interface Moments extends OfAgent, OfCoordinator {}

interface OfAgent {
  /** The agent asks for work: the request for so many slots leaves now. */
  'poll.began': { slots: number }
  /** The poll is answered, or given up because the number of free slots has changed. */
  'poll.ended': { offers: number }
  /** The agent's link has given a frame to the socket. */
  'frame.sent': { type: string }
  /** The agent has done all that a frame of the coordinator asks for. */
  'frame.obeyed': { type: string }
  /** A heartbeat was answered: the leases that it named hold from its sending. */
  'lease.told': { beat: number }
  /** It is written down that the program may begin, and there is no process for it yet. */
  'program.begins': Placed
  'program.started': Placed
  /** The program only waits and has given its slot back. */
  'program.parked': Placed
  /** The program's process is about to be given up. */
  'program.evicted': Placed & { reason: string }
  /** The program's process is gone, and its end is on the way into the spool. */
  'program.ended': Placed & { how: string }
  /** The spool's entries are in its file. */
  'spool.written': { placements: number }
  'spool.acked': Placed & { seq: number }
  'hook.ended': { name: string; isYes: boolean }
  /** The checks that were due have been asked, and what they found is in the agent's facts. */
  'checks.looked': { unready: number }
  'status.written': { state: string }
  'key.renewed': { isDone: boolean }
  /** A process without a run has said that it can have one. */
  'process.ready': { pid: number | undefined }
  /** A process that could have had runs has ended, and nothing of it is left. */
  'process.gone': { pid: number | undefined }
  'workspace.removed': { folder: string }
  /** The agent removes no bundles any more; so many are left for the next one. */
  'bundles.removed': { left: number }
  'reaper.restarted': { pid: number | undefined }
}

interface OfCoordinator {
  /** A delivery and what it starts are committed; its sender has not been answered yet. */
  'delivery.committed': { delivery: string; outcome: string }
  /** A group commit is through: its callers have their answers, or are about to hear of the failure. */
  'group.committed': { name: string; items: number }
  /** A group commit is tried again: the database was away, or ended it as a deadlock. */
  'group.retried': { name: string; reason: string }
  /** The coordinator has looked whether the database answers; `isAway`: agents are refused. */
  'database.looked': { isAway: boolean }
  /** Runs were moved and committed, and everybody who waits for them has been told. */
  'runs.moved': object
  /** An agent was let in by its hello. */
  'agent.connected': { runner: string }
  /** A new poll waits for work, or one that did is answered. */
  'polls.waiting': { count: number }
  /** Somebody has begun to read a run's log as it grows, or has stopped. */
  'readers.following': { log: string; count: number }
  /** Something changed elsewhere, and what waits for it here has been told. */
  'bell.heard': { topic: string; id: string }
  /** What was due of these is done, and the next look is set. */
  'timers.fired': { of: 'timers' | 'schedules'; nextMs: number | null }
  /** Ticks that are decided wait for those of so many orgs, as more of them are late than have a turn at once. */
  'schedules.waiting': { undecided: number }
  /** What was due of these schedules is committed. */
  'schedules.settled': { schedules: string[] }
  /** Ticks of these schedules wait for an agent, which may know more of their runs. */
  'schedules.held': { schedules: string[] }
  /** A job has ended unfinished runs of schedules of an org for others of them. */
  'schedules.ended': { orgId: string; runs: string[] }
  /** A job that does something to many runs has done a piece, or has come to its end. */
  'bulk.piece': { jobId: string }
  'bulk.finished': { jobId: string }
  /** A worker of jobs has looked whose lock is free. */
  'workers.looked': { free: string[] }
  /** A loop of the coordinator has looked at everything it looks at. */
  'sweep.done': { of: 'placements' | 'runs' | 'bulkJobs' | 'deadlines' }
  /** A coordinator has said that leases can be renewed, and has lengthened so many that could not be. */
  'pulse.done': { lengthened: number; passedOver: number; forwardMs: number; backMs: number }
  /** The database has noted that runners have polled. */
  'polls.noted': object
  /** The public halves of all keys of run tokens have been asked for. */
  'tokenKeys.read': { keys: number }
  /** A coordinator has looked whether it has file descriptors left, and has said so where they are few. */
  'openFiles.looked': { taken: number }
  /** A frame of an agent was parsed, and is about to be begun. */
  'frame.read': { runner: string; chars: number }
  /** Long work may go on by one piece. */
  'pace.passed': { org: string }
  /** A reader of a version's files has left, having come upon so many of them. */
  'source.left': { files: number }
  /** A child process for work on what customers send takes jobs. */
  'tools.started': { name: string; pid: number }
  /** A child process has done the first step of its job, and begins the next. */
  'tools.step': { pid: number }
  /** A job of an org was answered, or has ended its child. */
  'tools.done': { name: string; org: string; kind: string }
  'tools.ended': { name: string }
}

interface Placed {
  run: string
  epoch: number
}

export type MomentName = keyof Moments
export type Moment = { [K in MomentName]: { name: K; facts: Moments[K] } }[MomentName]

const moments = channel('windlass.moment')

/** Announces a moment to the tests of this process. Without a listener it costs one object and one comparison. */
export function probe<K extends MomentName>(name: K, facts: Moments[K]): void {
  if (moments.hasSubscribers) moments.publish({ name, facts })
}

/** Tells the listener each moment, within the code that announces it. Answers how to stop. */
export function onMoment(listener: (moment: Moment) => void): () => void {
  const hear = (moment: unknown) => listener(moment as Moment)
  moments.subscribe(hear)
  return () => moments.unsubscribe(hear)
}
