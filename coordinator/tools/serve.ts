import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'

/** What a child says to its pool. `cpuMicros` is all the processor time that it has used so far. */
export type Said<A> = { cpuMicros: number } & (
  | { is: 'ready' }
  | { is: 'step' }
  | { is: 'answer'; answer: A }
  | { is: 'broken'; why: string }
)

// Coordinator and database come first, for the processor and, when the machine's memory ends, for the kernel. What this
// process starts has the same.
setPriority(5)
if (process.platform === 'linux') {
  try {
    writeFileSync('/proc/self/oom_score_adj', '500')
  } catch {
    // Where /proc can only be read, the kernel chooses by size alone.
  }
}

/**
 * Looks once a second from a thread: in the middle of a job this process hears nothing, and a job may never end. What
 * the process has started is of its group.
 */
const WATCH = `
  const parent = ${process.ppid}
  setInterval(() => { if (process.ppid !== parent) process.kill(-process.pid, 'SIGKILL') }, 1000)`

const watch = new Worker(WATCH, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } })
watch.unref()
// At once: it starts beside the program, which takes longer to be loaded.
const isWatched = once(watch, 'online')

/** What a child hears: the pieces of a large job, one message each, and then the job. */
export type ToolMessage<P> = { piece: unknown } | { job: P }

/**
 * `step` is called between the parts of a long job: the limit of processor time counts anew from there. `pieces` came
 * before the job.
 */
export type Work<P, A> = (payload: P, step: () => void, pieces: readonly unknown[]) => A | Promise<A>

/** The child's half of a pool: answers one job after the other. */
export function serve<P, A>(answer: Work<P, A>): void {
  const say = (said: { is: 'ready' | 'step' } | { is: 'answer'; answer: A } | { is: 'broken'; why: string }) =>
    process.send?.({ ...said, cpuMicros: cpuMicros() })

  async function work(payload: P, pieces: readonly unknown[]): Promise<void> {
    try {
      say({ is: 'answer', answer: await answer(payload, () => say({ is: 'step' }), pieces) })
    } catch (error) {
      // V8 dies of a full heap by itself; memory beside the heap, and a text longer than any may be, end in an error.
      if (error instanceof RangeError && /allocation failed|string length/.test(error.message)) process.abort()
      say({ is: 'broken', why: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  }

  let pieces: unknown[] = []
  process.on('message', (message: ToolMessage<P>) => {
    if ('piece' in message) {
      pieces.push(message.piece)
      return
    }
    const all = pieces
    pieces = []
    void work(message.job, all)
  })
  process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'))
  // Ctrl-C and supervisors reach every process of a group; the coordinator ends this one when its jobs are done.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  // Not before: what the thread needs to start would be counted for the first job.
  void isWatched.then(() => say({ is: 'ready' }))
}

function cpuMicros(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
