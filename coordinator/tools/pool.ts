import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Held, Outcome } from './child.ts'
import { type ChildrenOptions, keepChildren } from './children.ts'
import { createTurns } from '../turns.ts'

export type { Held, Outcome } from './child.ts'

/**
 * Child processes for work on what customers send: it may take for ever, and all memory that there is. They are started
 * when there is something to do, know nothing of the coordinator's environment, and end with it even when it is killed.
 */
export interface ToolPool<P, A> {
  /**
   * Resolves with the answer, or with how the job has ended its child. Rejects with UNAVAILABLE when the org has too
   * much waiting, when the pool is closed, and when no child can be started; with another error when it throws.
   */
  run(job: ToolJob<P>): Promise<Outcome<A>>
  /** Processes that are up, or about to be. */
  awake(): number
  /** Kills what is under way; resolves when no process is left. */
  close(): Promise<void>
}

export interface ToolJob<P> {
  /** The org whose turn the job uses up. */
  org: string
  /** What `serve` gets; or makes it, knowing what the process that will do it holds already. */
  payload: P | ((held: Held) => P)
  /** Sent before the payload, each in a turn of its own: what is large is to keep nobody waiting. */
  pieces?: readonly unknown[]
  /** Processor time of the job's first step, in place of the pool's `cpuMs`. Asked when the payload has been made. */
  cpuMs?(): number | undefined
  /** Exempts the job from `mostWaiting`: the caller brings such jobs one by one. */
  isPatient?: boolean
  /** Asks for a process that has done nothing yet: what jobs of others have left in one cannot end it. */
  inNewProcess?: boolean
}

export interface ToolPoolOptions<P, A> extends ChildrenOptions<P, A> {
  /** Processes at once. The last free one is kept for an org that has none at work. */
  most: number
  /** Jobs of one org that may wait; a stampede is told to come back. */
  mostWaiting: number
  /** Log for programs that cannot be started. */
  log?: Log
}

interface Waiting<P, A> {
  job: ToolJob<P>
  resolve: (outcome: Outcome<A>) => void
  reject: (error: unknown) => void
}

export function createToolPool<P, A>(options: ToolPoolOptions<P, A>): ToolPool<P, A> {
  const { name, most, mostWaiting } = options
  const children = keepChildren<P, A>(options)
  const turns = createTurns<Waiting<P, A>>()
  /** The org of each job under way. */
  const working: string[] = []
  let closed = false

  function next() {
    while (working.length < most) {
      // The last free process is kept for another org, which then need not wait for this one's longest job.
      const isLast = most > 1 && working.length === most - 1
      const waiting = turns.take((org) => !isLast || !working.includes(org))
      if (!waiting) return
      working.push(waiting.job.org)
      void work(waiting)
    }
  }

  async function work({ job, resolve, reject }: Waiting<P, A>): Promise<void> {
    const { org } = job
    try {
      const outcome = await ask(job)
      // Killed by our own close: that says nothing about the job.
      if (closed) throw stopping()
      resolve(outcome)
      probe('tools.done', { name, org, kind: outcome.kind })
    } catch (error) {
      reject(closed ? stopping() : error)
    }
    working.splice(working.indexOf(org), 1)
    next()
  }

  async function ask(job: ToolJob<P>): Promise<Outcome<A>> {
    const { payload } = job
    const child = await children.take({ isNew: job.inNewProcess ?? false }).catch((error: unknown) => {
      options.log?.error('tools.unstarted', { tool: name, error })
      throw new Fault('UNAVAILABLE', undefined, `no process for ${name} can be started here: try again in a minute`)
    })
    const made = typeof payload === 'function' ? (payload as Made<P>)(child.held) : payload
    const cpuMs = job.cpuMs?.()
    const outcome = await child.ask(made, { ...(cpuMs !== undefined && { cpuMs }), pieces: job.pieces ?? [] })
    if (outcome.kind === 'answer') children.giveBack(child)
    return outcome
  }

  return {
    run(job) {
      if (closed) return Promise.reject(stopping())
      const waiting = turns.waiting(job.org)
      if (waiting >= mostWaiting && !job.isPatient) return Promise.reject(tooMany(waiting, name))
      return new Promise((resolve, reject) => {
        turns.add(job.org, { job, resolve, reject })
        next()
      })
    },
    awake: () => children.count(),
    async close() {
      closed = true
      for (const { reject } of turns.drain()) reject(stopping())
      await children.endAll()
    },
  }
}

type Made<P> = (held: Held) => P

const stopping = () => new Fault('UNAVAILABLE', undefined, 'the coordinator is being stopped: try again in a moment')

const tooMany = (waiting: number, name: string) =>
  new Fault('UNAVAILABLE', { waiting }, `${waiting} jobs of this org wait for ${name} already: try again in a minute`)
